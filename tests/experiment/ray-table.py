#!/usr/bin/python3
"""ray-table.py BIN FOLDER [SPLIT...]: runs the campaigns configs/campaigns/ray-SPLIT.ini (all of them) for each of the four
targets and prints our Table III beside the paper's. Resumable: a campaign that is done is read again."""
import json, os, re, subprocess, sys

TARGETS = ["train", "fit", "training_loop", "train_epoch"]
PAPER = {"holdout": ("HoldOut", [6.41, 6.71, 1.07, 1.89]),
         "holdout-settings": ("HoldOut of settings", [None] * 4),
         "interpolation-cpus": ("Interpolation (num_CPUs)", [5.44, 6.89, 9.68, 10.73]),
         "interpolation-images": ("Interpolation (num_images)", [None] * 4),
         "extrapolation-cpus": ("Extrapolation (num_CPUs)", [14.54, 15.92, 12.79, 13.47]),
         "extrapolation-images": ("Extrapolation (num_images)", [None, None, 3.85, 3.76])}


def run(bin_dir, folder, split, target):
    with open("configs/campaigns/ray-%s.ini" % split) as f:
        text = re.sub(r"^y = .*$", "y = '%s'" % target, f.read(), flags=re.M)
    text = text.replace("../profiles/ray/cpu.csv", os.path.abspath("configs/profiles/ray/cpu.csv"))
    name = os.path.join(folder, "ray-%s-%s" % (split, target))
    with open(name + ".ini", "w") as f:
        f.write(text)
    subprocess.run([bin_dir + "/postrider", "automl", name + ".ini", "-o", name, "-q"], check=True)
    with open(name + "/results.json") as f:
        return json.load(f)


def main():
    bin_dir, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    print("| split | row | " + " | ".join(TARGETS) + " |")
    print("|---|---|" + "---|" * len(TARGETS))
    for split in sys.argv[3:] or PAPER:
        title, paper = PAPER[split]
        rows = {"paper": ["-" if p is None else "%.2f" % p for p in paper], "ours": [], "ours, least": [], "hybrid": []}
        for target in TARGETS:
            d = run(bin_dir, folder, split, target)
            four = [t for t in d["techniques"] if t["name"] != "Hybrid" and t["validation"]["mape"] is not None]
            chosen = min(four, key=lambda t: t["hp_selection_mape"])
            least = min(four, key=lambda t: t["validation"]["mape"])
            hybrid = [t for t in d["techniques"] if t["name"] == "Hybrid"][0]["validation"]["mape"]
            rows["ours"].append("%.2f (%s)" % (100 * chosen["validation"]["mape"], chosen["name"]))
            rows["ours, least"].append("%.2f (%s)" % (100 * least["validation"]["mape"], least["name"]))
            rows["hybrid"].append("-" if hybrid is None else "%.2f" % (100 * hybrid))
        for row, cells in rows.items():
            print("| %s | %s | %s |" % (title, row, " | ".join(cells)))
            sys.stdout.flush()


main()
