#!/usr/bin/python3
"""Real jobs of a script that knows nothing of Postrider: are its promises kept, and do its bounds hold?

usage: foreign.py BIN_DIR OUT_DIR [--jobs N] [--budget TIME] [--seed N] [--script FILE]

Does what a new user does: `init`, `profile --budget`, then N jobs with `run --detach`. Limits are drawn between 0.8 and 8 times
the end that is expected of the middle batch at that moment, gaps between jobs have a mean of half its expected time, epochs are 1 to 4 or open.
OUT_DIR gets jobs.csv, a row a job, and the last line says how many jobs were promised, kept and within their 90 % bounds.
What else the machine does is in the numbers; the load of every job is in its row. Needs python3-sklearn."""
import argparse, csv, json, math, os, random, subprocess, sys, time

here = os.path.dirname(os.path.abspath(__file__))
ap = argparse.ArgumentParser()
ap.add_argument('bin'), ap.add_argument('out')
ap.add_argument('--jobs', type=int, default=40), ap.add_argument('--budget', default='3m'), ap.add_argument('--seed', type=int, default=1)
ap.add_argument('--script', default=here + '/foreign/digits.py')
o = ap.parse_args()
rng = random.Random(o.seed)
out = os.path.abspath(o.out)
home = out + '/home'
os.makedirs(home + '/run', mode=0o700, exist_ok=True)
env = dict(os.environ, HOME=home, XDG_RUNTIME_DIR=home + '/run', XDG_STATE_HOME=home + '/state', XDG_CONFIG_HOME=home + '/config',
           OPENBLAS_NUM_THREADS='1', OMP_NUM_THREADS='1', PYTHONWARNINGS='ignore')


def postrider(*words, ok=(0,)):
    """Runs the program; its output. Ends everything with what it said if it ends otherwise than expected."""
    r = subprocess.run([os.path.abspath(o.bin) + '/postrider', *words], cwd=out, env=env, capture_output=True, text=True)
    if r.returncode not in ok:
        sys.exit(f'foreign.py: {" ".join(words)}: exit code {r.returncode}: {r.stderr[-400:]}')
    return r.returncode, r.stdout


name = os.path.splitext(os.path.basename(o.script))[0]
folder = f'{name}-postrider'
if not os.path.exists(f'{out}/{folder}/job.model'):
    postrider('init', '--factor', 'hidden=16,64', '--', o.script, '--batch-size', '{batch}', '--epochs', '{epochs}', '--hidden', '{hidden}',
              '--seed', '{seed}')
    postrider('profile', folder, '--budget', o.budget, '-q')

job_of = {}
for i in range(o.jobs):
    hidden = rng.choice(['16', '64'])
    what = [folder, '--set', f'hidden={hidden}', '--epochs', rng.choice(['1', '2', '4', '1..4'])]
    # The end of the middle batch, as it is expected now. Its bound under a distant limit allows for all who may overtake it.
    _, text = postrider('run', *what, '--slo', '1d', '--dry-run', '--json')
    c = json.loads(text)['decision']['candidates']
    middle = sorted(c, key=lambda x: (x['batch'], x['epochs'] or 0))[len(c) // 2]
    limit = ((middle['wait_s'] or 0) + middle['time_s']) * 0.8 * math.exp(math.log(10) * rng.random())
    code, text = postrider('run', *what, '--slo', f'{limit:.3f}s', '--detach', '-q', '--tag', str(i), ok=(0, 3))
    job_of[str(i)] = code
    time.sleep(rng.expovariate(1 / (0.5 * middle['time_s'])))
_, text = postrider('list', '-q', '--all', '--state', 'queued,running')
for job in text.split():
    postrider('wait', job, '--timeout', '600s', ok=(0, 1, 124))

_, text = postrider('list', '--all', '--jsonl')
rows = sorted((json.loads(line) for line in text.splitlines() if line.startswith('{')), key=lambda r: int(r['job']))
fields = ['job', 'verdict', 'state', 'batch', 'epochs', 'slo_s', 'predicted_s', 'upper_s', 'response_s', 'slo_outcome', 'predicted_accuracy', 'accuracy']
with open(out + '/jobs.csv', 'w', newline='') as f:
    w = csv.writer(f)
    w.writerow(fields)
    w.writerows([r.get(k) for k in fields] for r in rows)
promised = [r for r in rows if r['verdict'] == 'promised' and r['state'] == 'done']
kept = sum(r['slo_outcome'] == 'met' for r in promised)
bounded = [r for r in rows if r['state'] == 'done' and r.get('upper_s')]
within = sum(r['response_s'] <= r['upper_s'] for r in bounded)
gained = sum(r['accuracy'] or 0 for r in rows if r.get('slo_outcome') == 'met') / max(1, len(rows))
print(f'{len(rows)} jobs, {sum(r["verdict"] == "rejected" for r in rows)} rejected, {kept} of {len(promised)} promises kept, '
      f'{within} of {len(bounded)} within the bound, accuracy {gained:.3f} (a miss or refusal is 0)')
