#!/usr/bin/python3
"""From a script that nobody has measured to a promise, and is it kept? PyTorch's first example, 14 epochs.

usage: first_promise.py BIN_DIR OUT_DIR [--times N] [--budget TIME] [--records N] [--seed N] [--data DIR]

Each time in a new home, as a new user: `init`, `profile --budget`, then `run --epochs 14` with a limit of 1 to 2 times the shortest
one that can be promised. Said of each: how long it was from the first command to the promise, the limit, and what the job took. Without
--data DIR (MNIST, as `make mnist` brings it) scikit-learn's digits are written in its format, 28 x 28, with --records of them to
learn from. Needs python3-torch and python3-sklearn."""
import argparse, json, os, random, struct, subprocess, sys, tempfile, time

here = os.path.dirname(os.path.abspath(__file__))
ap = argparse.ArgumentParser()
ap.add_argument('bin'), ap.add_argument('out')
ap.add_argument('--times', type=int, default=10), ap.add_argument('--budget', default='2m'), ap.add_argument('--seed', type=int, default=1)
ap.add_argument('--records', type=int, default=6000), ap.add_argument('--data')
o = ap.parse_args()
rng = random.Random(o.seed)
out = os.path.abspath(o.out)
os.makedirs(out, exist_ok=True)


def idx(name, values, shape):
    with open(f'{out}/mnist/{name}', 'wb') as f:
        f.write(struct.pack(f'>HBB{len(shape)}I', 0, 8, len(shape), *shape) + values.astype('uint8').tobytes())


def digits():
    """Those of scikit-learn three times as large, shifted by up to 2 either way, as MNIST has them."""
    import numpy
    from sklearn.datasets import load_digits
    os.makedirs(out + '/mnist', exist_ok=True)
    images, labels = load_digits().images, load_digits().target
    chance = numpy.random.default_rng(o.seed)
    for part, of, n in (('train', slice(0, 1400), o.records), ('t10k', slice(1400, None), max(400, o.records // 6))):
        pick = chance.integers(0, len(labels[of]), n)
        large = numpy.zeros((n, 28, 28))
        for k, (dx, dy) in zip(range(n), chance.integers(0, 5, (n, 2))):
            large[k, dy:dy + 24, dx:dx + 24] = numpy.kron(images[of][pick[k]], numpy.ones((3, 3))) * 15.9
        idx(part + '-images-idx3-ubyte', large, large.shape)
        idx(part + '-labels-idx1-ubyte', labels[of][pick], (n,))
    return out + '/mnist'


data = os.path.abspath(o.data) if o.data else digits()
kept = promised = 0
for i in range(o.times):
    with tempfile.TemporaryDirectory(dir=out) as home:
        env = dict(os.environ, HOME=home, XDG_RUNTIME_DIR=home, XDG_STATE_HOME=home + '/state', XDG_CONFIG_HOME=home + '/config')
        env.pop('POSTRIDER_CONFIG', None)

        def postrider(*words, ok=(0,)):
            r = subprocess.run([os.path.abspath(o.bin) + '/postrider', *words], cwd=home, env=env, capture_output=True, text=True)
            if r.returncode not in ok:
                sys.exit(f'first_promise.py: {" ".join(words)}: exit code {r.returncode}: {r.stderr[-400:]}')
            return r.stdout

        began = time.monotonic()
        postrider('init', '--yes', '--name', 'mnist', '--factor', 'batch=32,64,128', '--factor', 'epochs=1,2,14', '--factor', 'njobs=1', '--',
                  '/usr/bin/python3', here + '/../examples/mnist.py', '--data', data, '--batch-size', '{batch}', '--epochs', '{epochs}')
        postrider('profile', 'mnist-postrider', '--no-mixed', '--budget', o.budget, '-q')
        asked = json.loads(postrider('run', 'mnist-postrider', '--epochs', '14', '--slo', '1d', '--dry-run', '--json'))
        first_s = time.monotonic() - began
        shortest = min(c['upper_s'] for c in asked['decision']['candidates'] if c['upper_s'])
        limit = shortest * 2.0 ** rng.random()
        text = postrider('run', 'mnist-postrider', '--epochs', '14', '--slo', f'{limit:.3f}s', '--idle', '1s', '--json', ok=(0, 1, 3))
        answer = json.loads(text)
        job = answer['job']
        promised += answer['verdict'] == 'promised'
        kept += answer['verdict'] == 'promised' and job['slo_outcome'] == 'met'
        print(f'{i + 1}: a promise after {first_s:.0f} s; {answer["verdict"]}: limit {limit:.1f} s, batch {job["batch"]:g}, expected '
              f'{job["predicted_s"]:.1f} s, took {job["response_s"] or float("nan"):.1f} s, accuracy {job["accuracy"]}, {job["slo_outcome"]}', flush=True)
        time.sleep(2)  # for the daemon to leave
print(f'{promised} of {o.times} promised, {kept} kept')
