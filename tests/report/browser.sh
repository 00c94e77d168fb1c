#!/bin/sh
# browser.sh [FOLDER]: reports in a real browser (headless Chromium), at the width of a desk and of a phone, light and dark: every figure
# is there, nothing runs over, no text lies on another, letters are large and dark enough (check.js). Prints one line a claim as the
# scripts of tests/cli/ do, and after each the verdict as JSON where it is bad. With FOLDER, screenshots are left there.
#
# From the environment: BIN, the folder of the built programs; FIXTURE, the folder of another comparison.
set -u
cd "$(dirname "$0")/../.." || exit 1
BIN=${BIN:-$PWD/build}
fixture=${FIXTURE:-tests/report/fixture}
shots=${1:-}
all=attainment,tradeoff,predicted,residuals,importances,anova,timeline,calibration
failures=0

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
	echo "skipped - reports in a browser (no chromium here)"
	exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

make_report() { # folder file
	"$BIN/postrider" report "$1" -q -o "$2"
}

chromium_run() { # options...: on stdout what it dumps
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$dir/profile" \
		--virtual-time-budget=20000 "$@" 2>/dev/null
}

mode_of() { if [ "$1" = dark ]; then echo 0; else echo 1; fi; } # as Blink counts the schemes

# With the script in a copy: NAME.html in $dir
with_script() { # report name
	awk -v script=tests/report/check.js '/<\/body>/ { print "<script>"; while ((getline line < script) > 0) print line; print "</script>" } { print }' \
		"$1" >"$dir/$2.html"
}

# Both widths in one page: a frame has a width of its own, however wide the window
wrapper() { # name scheme figures
	cat <<END
<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><pre id="verdict"></pre>
<script>
addEventListener("message", function (e) { document.getElementById("verdict").textContent += "VERDICT " + e.data + "\n"; });
</script>
<iframe style="border:0;width:1280px;height:900px" src="$1.html?scheme=$2&figures=$3"></iframe>
<iframe style="border:0;width:390px;height:844px" src="$1.html?scheme=$2&figures=$3"></iframe>
</body>
END
}

verdicts() { # name scheme figures: a line of JSON a width
	mode=$(mode_of "$2")
	wrapper "$1" "$2" "$3" >"$dir/wrapper.html"
	chromium_run --blink-settings=preferredColorScheme="$mode" --window-size=1700,1000 --dump-dom "file://$dir/wrapper.html" |
		sed -n 's/.*VERDICT //p' | grep '^{' | sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g'
}

claim() { # text good? verdict
	if [ "$2" = yes ]; then
		echo "ok - $1"
	else
		echo "not ok - $1 (${3:-no verdict})"
		failures=$((failures + 1))
	fi
}

# All four of a report
look_at() { # name report figures what
	with_script "$2" "$1"
	for scheme in light dark; do
		verdicts "$1" $scheme "$3" >"$dir/verdicts"
		for width in 1280 390; do
			verdict=$(grep "\"width\":$width," "$dir/verdicts")
			good=no
			case $verdict in '{"ok":true,'*) good=yes ;; esac
			claim "$4, $width px, $scheme: every figure, nothing over the edge, no text on another" $good "$verdict"
		done
		if [ -n "$shots" ]; then
			mode=$(mode_of $scheme)
			for width in 1280 390; do
				printf '<!DOCTYPE html><body style="margin:0"><iframe style="border:0;width:%dpx;height:12000px" src="%s"></iframe>' \
					$width "file://$2" >"$dir/shot.html"
				chromium_run --blink-settings=preferredColorScheme="$mode" --window-size=$((width < 500 ? 500 : width)),12000 \
					--screenshot="$shots/$1-$width-$scheme.png" "file://$dir/shot.html" >/dev/null
			done
		fi
	done
}

# Fourteen policies with long names, and a sweep: more than the figures would like
make_crowded() { # folder
	mkdir -p "$1"
	cp "$fixture/training.csv" "$1/"
	awk -v dir="$1" 'function policy(i, s) {
		name = i == 1 ? "courier" : i == 2 ? "postrider" : i == 14 ? "oracle" : "policy-with-a-long-name-" i ":512"
		return sprintf("{\"name\":\"%s\",\"jobs\":1000,\"attainment\":%g,\"attainment_ci\":[%g,%g],\"attainment_all\":%g,\"accuracy_met\":%g,\"accuracy_zero\":%g,\"regret\":%g,\"response_mean_s\":%g,%s\"calibration\":[{\"confidence\":0.9,\"runs\":1000,\"within\":%d},{\"confidence\":0.95,\"runs\":500,\"within\":%d}],\"importances\":{\"a-feature-with-quite-a-long-name\":0.5,\"b\":0.3,\"c\":0.2}}",
			name, 0.65 + i / 40, 0.63 + i / 40, (0.67 + i / 40 > 1 ? 1 : 0.67 + i / 40), s * (0.72 + i / 50), 0.9 + i / 1000, s * (0.3 + i / 60), 0.2 - i / 100, 1000 * i,
			i == 1 ? "" : "\"versus\":{\"attainment_all\":{\"difference\":0.1,\"low\":0.05,\"high\":0.15,\"p\":0.00001}},", 850 + 5 * i, 440 + 4 * i)
	}
	function list(s,   i, text) { for (i = 1; i <= 14; i++) text = text (i > 1 ? "," : "") policy(i, s); return text }
	BEGIN {
		print "{\"baseline\":\"courier\",\"replications\":20,\"policies\":[" list(1) "]}" >(dir "/compare.json")
		print "{\"key\":\"slo.scale\",\"points\":[" >(dir "/sweep.json")
		for (s = 0.5; s <= 1.01; s += 0.1) print (s > 0.5 ? "," : "") "{\"value\":" s ",\"policies\":[" list(s) "]}" >(dir "/sweep.json")
		print "]}" >(dir "/sweep.json")
		file = dir "/jobs.csv"
		print "policy,replication,job,arrival_s,cpus,slo_s,outcome,start_s,end_s,run_s,predicted_s,processes" >file
		split("met missed rejected failed done refused", state, " ")
		for (i = 1; i <= 10; i++) for (k = 0; k < 400; k++) {
			name = i == 1 ? "courier" : i == 2 ? "postrider" : "policy-with-a-long-name-" i ":512"
			run = 3 * 1.02 ^ (k % 300)
			printf "%s,1,%d,%d,%d,%g,%s,%d,%g,%g,%g,%g\n", name, k, 40 * k, 1 + k % 4, 400, state[1 + k % 6], 40 * k + 5, 40 * k + 5 + run, run, run * (1 + (k % 9 - 4) / 10), 1 + k % 64 >file
		}
	}'
}

cp -r "$fixture" "$dir/fixture"
make_report "$dir/fixture" "$dir/fixture-report.html" || exit 1
look_at fixture "$dir/fixture-report.html" $all "a comparison"

make_crowded "$dir/crowded"
make_report "$dir/crowded" "$dir/crowded-report.html" || exit 1
look_at crowded "$dir/crowded-report.html" $all,sweep "many policies with long names"

mkdir "$dir/replay"
cat >"$dir/replay/compare.json" <<'END'
{"kind":"replay","seed":1,"replications":1,"policies":[{"name":"postrider","jobs":40,"attainment":0.9,"attainment_ci":[0.8,0.95],"attainment_all":0.85}]}
END
awk -F, 'NR == 1 || ($1 == "postrider" && $2 == 1)' "$fixture/jobs.csv" >"$dir/replay/jobs.csv"
make_report "$dir/replay" "$dir/replay-report.html" || exit 1
look_at replay "$dir/replay-report.html" attainment,predicted,residuals,timeline "a replay"

# The check itself: each of these it must see.
sees() { # what pattern sed-expression
	sed "$3" "$dir/fixture-report.html" >"$dir/bad-report.html"
	with_script "$dir/bad-report.html" bad
	verdict=$(verdicts bad light $all | grep '"width":390,')
	good=no
	case $verdict in '{"ok":false,'*"$2"*) good=yes ;; esac
	claim "the check sees $1" $good "$verdict"
}
sees "a page that is too wide" "the page is" 's/<\/style>/main{min-width:700px}<\/style>/'
sees "text on text" "lies on" 's/<\/style>/.tick{font-size:34px}<\/style>/'
sees "a figure that is not there" "no figure anova" 's/id="anova"/id="other"/'
sees "faint letters" "contrast" 's/<\/style>/.tick{fill:#aaa!important}<\/style>/'

[ "$failures" -eq 0 ]
