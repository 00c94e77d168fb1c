# ranger's side of the benches: Rscript ranger_peer.R TASK DATA [--repetitions K] [--trees T]
#                               [--threads N] [--features P] [--test-rows N] [--seed S]
# Prints one JSON object on stdout; {"installed": false} where ranger is not there.
#
# Tasks
#   forest-fit    2000 trees of depth 6, squared error, 1 thread, on the small table (CSV, y last)
#   forest-large  100 trees of depth 10, 2 threads, on a raw float64 file (row-major, y last)
#
# What ranger means by its arguments: max.depth counts splits on a path, as everybody's; min.node.size
# is the size above which a node may be split, so 1 splits whatever can be split; mtry set to the number of
# features looks at all of them; a row drawn twice by the bootstrap is kept twice, where others give
# it the weight 2. The out-of-bag error is switched off: the others do not compute it either.
args <- commandArgs(trailingOnly = TRUE)

fail <- function(...) {
  message("ranger_peer.R: ", ...)
  quit(status = 2)
}

option <- function(name, otherwise) {
  at <- match(paste0("--", name), args)
  if (is.na(at)) return(otherwise)
  value <- suppressWarnings(as.numeric(args[at + 1]))
  if (is.na(value) || value < 1) fail("--", name, " needs a number of at least 1")
  value
}

if (length(args) < 2) fail("needs TASK and DATA")
task <- args[1]
data_file <- args[2]
if (!task %in% c("forest-fit", "forest-large")) fail("no task ", task)

if (!suppressWarnings(requireNamespace("ranger", quietly = TRUE))) {
  cat('{"peer": "ranger", "installed": false, "why": "package ranger is not installed"}\n')
  quit(status = 0)
}

now <- function() as.numeric(proc.time()["elapsed"])

memory_mb <- function(field) {
  status <- tryCatch(readLines("/proc/self/status"), error = function(e) character(0))
  line <- grep(paste0("^", field, ":"), status, value = TRUE)
  if (length(line) == 0) return(NA)
  as.numeric(gsub("[^0-9]", "", line[1])) / 1024
}

number <- function(v) if (is.na(v)) "null" else format(v, digits = 9, scientific = FALSE)

say <- function(...) {
  pairs <- c(peer = '"ranger"', installed = "true",
             version = paste0('"', as.character(packageVersion("ranger")), '"'),
             task = paste0('"', task, '"'), ...)
  cat("{", paste0('"', names(pairs), '": ', pairs, collapse = ", "), "}\n", sep = "")
}

fit <- function(x, y, trees, depth, threads, seed) {
  ranger::ranger(x = x, y = y, num.trees = trees, mtry = ncol(x), max.depth = depth,
                 min.node.size = 1, replace = TRUE, splitrule = "variance",
                 num.threads = threads, seed = seed, oob.error = FALSE, verbose = FALSE)
}

seed <- option("seed", 1)
if (task == "forest-fit") {
  table <- as.matrix(read.csv(data_file))
  p <- ncol(table) - 1
  x <- table[, 1:p, drop = FALSE]
  y <- table[, p + 1]
  trees <- option("trees", 2000)
  best <- Inf
  # The clock of R ticks in milliseconds: time a few fits together.
  turns <- 3
  for (i in seq_len(option("repetitions", 1))) {
    start <- now()
    for (turn in seq_len(turns)) model <- fit(x, y, trees, 6, 1, seed + i * turns + turn)
    best <- min(best, (now() - start) / turns)
  }
  say(seconds = number(best), criterion = '"squared"', rows = number(length(y)),
      trees = number(trees), threads = "1")
} else {
  p <- option("features", 10)
  n <- file.size(data_file) / 8
  if (is.na(n)) fail("cannot read ", data_file)
  table <- matrix(readBin(data_file, "double", n, size = 8, endian = "little"),
                  ncol = p + 1, byrow = TRUE)
  x <- table[, 1:p]
  y <- table[, p + 1]
  colnames(x) <- paste0("x", 1:p)
  rm(table)
  kept <- length(y) - option("test-rows", 0)
  test_x <- x[seq_along(y) > kept, , drop = FALSE]
  test_y <- y[seq_along(y) > kept]
  x <- x[seq_len(kept), , drop = FALSE]
  y <- y[seq_len(kept)]
  invisible(gc())
  trees <- option("trees", 100)
  threads <- option("threads", 2)
  before <- memory_mb("VmRSS")
  start <- now()
  model <- fit(x, y, trees, 10, threads, seed)
  took <- now() - start
  peak <- memory_mb("VmHWM")
  error <- NA
  if (length(test_y) > 0) error <- mean((predict(model, test_x)$predictions - test_y)^2)
  say(seconds = number(took * 100 / trees), measured_seconds = number(took),
      trees = number(trees), scaled = if (trees == 100) "false" else "true",
      rows = number(length(y)), threads = number(threads),
      rss_before_mb = number(before), peak_rss_mb = number(peak),
      test_mse = number(error))
}
