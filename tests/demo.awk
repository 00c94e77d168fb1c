# demo.awk JOBS.jsonl COMPARE.json: the last screen of `make run`. It says what the limit of each job decided, what came of the
# promises, and what one batch for all jobs would have brought, as sentences that are true of these numbers, good or bad.
function field(name,   at, rest) { # of the object in this line
	at = index($0, "\"" name "\":")
	if (!at) return ""
	rest = substr($0, at + length(name) + 3)
	sub(/^ */, "", rest)
	sub(/^"/, "", rest)
	match(rest, /[",}]/)
	rest = substr(rest, 1, RSTART - 1)
	return rest == "null" ? "" : rest
}
function value(   v) { v = $0; sub(/^[^:]*: */, "", v); gsub(/[",]/, "", v); return v }
function three(x) { x += 0; return x >= 100 ? sprintf("%.0f", x) : x >= 10 ? sprintf("%.1f", x) : x >= 1 ? sprintf("%.2f", x) : sprintf("%.3f", x) }
function bar(x,   i, s) { for (i = 0; i < 25 * x - 0.5; i++) s = s "#"; return s }

# ---- the jobs ----
FILENAME == ARGV[1] && /"job":/ {
	id = field("job") + 0
	if (id > most) most = id
	limit[id] = field("slo_s"); verdict[id] = field("verdict"); batch[id] = field("batch"); outcome[id] = field("slo_outcome")
	accuracy[id] = field("accuracy"); response[id] = field("response_s"); network[id] = field("network")
}

# ---- the comparison, a member a line ----
FILENAME == ARGV[2] && /^      "name":/ { policy = value(); order[++n_policies] = policy }
FILENAME == ARGV[2] && /^      "attainment_all":/ { met[policy] = value() }
FILENAME == ARGV[2] && /^      "accuracy_zero":/ { zero[policy] = value() }
FILENAME == ARGV[2] && /^        "accuracy_zero": \{/ { inside = 1 }
FILENAME == ARGV[2] && inside && /"low":/ { low[policy] = value() }
FILENAME == ARGV[2] && inside && /"high":/ { high[policy] = value(); inside = 0 }

END {
	print ""
	print "The limit decides the batch. The network simplenet, one job at a time:"
	for (i = 1; i <= 3; i++)
		if (verdict[i] == "rejected")
			printf "  limit %5s s  refused\n", three(limit[i])
		else
			printf "  limit %5s s  batch %3d  accuracy %.3f  took %5s s  %-11s %s\n", three(limit[i]), batch[i], accuracy[i],
				three(response[i]), verdict[i] == "promised" ? (outcome[i] == "met" ? "promise kept" : "promise broken") : outcome[i], bar(accuracy[i])
	for (i = 1; i <= most; i++) {
		if (verdict[i] == "promised") { promised++; kept += outcome[i] == "met" }
		if (verdict[i] == "rejected") refused++
		if (verdict[i] == "chance") { tried++; lucky += outcome[i] == "met" }
	}
	print ""
	printf "%d jobs: %d promised, %d of these kept", most, promised, kept
	if (tried) printf "; %d tried without a promise, %d in time", tried, lucky
	print refused ? "; " refused " refused at once." : "."
	print ""
	print "Such jobs with one batch for all (120 drawn from these, 12 times, replayed on what was measured):"
	print "                in time   accuracy, where a late or refused job counts 0"
	for (i = 1; i <= n_policies; i++) {
		p = order[i]
		name = p == "postrider" ? "Postrider" : p
		if (p ~ /^fixed:/) { name = "always " substr(p, 7); if (best == "" || zero[p] > zero[best]) best = p }
		if (p == "courier" || p == "naive") continue
		printf "  %-12s  %4.0f %%    %.3f  %s\n", name, 100 * met[p], zero[p], bar(zero[p])
	}
	gain = zero["postrider"] - zero[best]
	what = sprintf("the best single batch (%s): %.3f against %.3f", substr(best, 7), zero["postrider"], zero[best])
	if (high[best] < 0 && gain > 0)
		print "Postrider is more accurate than " what "."
	else if (low[best] > 0)
		print "Here Postrider is less accurate than " what "."
	else
		print "Here Postrider is not surely better than " what "; the difference could be chance."
}
