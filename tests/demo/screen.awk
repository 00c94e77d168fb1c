# screen.awk SCREEN.txt: a screen of text as an SVG picture, as it stands on a terminal. `make run` makes build/run/screen.svg of
# its last screen with it; docs/run.svg is one of these.
function clean(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
{ line[NR] = $0; if (length($0) > width) width = length($0) }
END {
	w = 24 + 8.4 * (width < 96 ? 96 : width); h = 24 + 18 * NR
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", w, h
	print "<title>The last screen of make run</title>"
	print "<style>rect{fill:#f6f7f9}text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1b1f24;white-space:pre}"
	print ".b{fill:#1d5fa8}.g{fill:#1a7f4b}.r{fill:#b3261e}"
	print "@media(prefers-color-scheme:dark){rect{fill:#1d2126}text{fill:#e8eaed}.b{fill:#7fb4ee}.g{fill:#6fd1a0}.r{fill:#f2918a}}</style>"
	printf "<rect width=\"%.0f\" height=\"%.0f\" rx=\"8\"/>\n", w, h
	for (i = 1; i <= NR; i++) {
		s = clean(line[i])
		sub(/##*$/, "<tspan class=\"b\">&</tspan>", s)
		sub(/promise kept/, "<tspan class=\"g\">&</tspan>", s)
		sub(/promise broken|refused$/, "<tspan class=\"r\">&</tspan>", s)
		if (s != "") printf "<text x=\"12\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", 10 + 18 * i, s
	}
	print "</svg>"
}
