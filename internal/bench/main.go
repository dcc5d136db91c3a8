// Command bench measures what Parley promises to be fast at, and prints one
// table. Each figure stands beside what the same machine does at the same time
// without Parley: a bare loop over the same store, or an overwrite with
// fdatasync. Only the ratio says something about Parley; machines differ and
// are noisy.
//
//	make bench
//	go run ./internal/bench -seconds 1 -only kernel
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one line of the table.
type row struct {
	what   string // what was measured
	figure string // with its unit
	beside string // what stands beside it, with its figure
	ratio  string // the one over the other, and the target
}

// bench is one run: where it works, how long it measures, what it found.
type bench struct {
	dir     string
	seconds time.Duration // of each throughput measurement
	out     io.Writer
	rows    []row
	n       int // for names of directories
}

// sections are the parts of the table in order; each can be asked for alone.
var sections = []struct {
	name string
	run  func(ctx context.Context, b *bench) error
}{
	{"kernel", benchKernel},
	{"turns", benchTurns},
	{"shared", benchShared},
	{"http", benchHTTP},
	{"wake", benchWake},
	{"idle", benchIdle},
	{"history", benchHistory},
	{"deltas", benchDeltas},
	{"storm", benchStorm},
	{"age", benchAge},
	{"leases", benchLeases},
}

func main() {
	seconds := flag.Float64("seconds", 4, "length of each throughput measurement")
	only := flag.String("only", "", "comma-separated sections: "+strings.Join(names(), ", "))
	subscribers := flag.String("subscribe", "", "be the subscribers of a section; for the bench itself")
	flag.Parse()
	if *subscribers != "" {
		fmt.Fprintln(os.Stderr, "bench:", beSubscribers(*subscribers, os.Stdin, os.Stdout))
		os.Exit(1)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, time.Duration(*seconds*float64(time.Second)), *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func names() (all []string) {
	for _, s := range sections {
		all = append(all, s.name)
	}
	return all
}

func run(ctx context.Context, out io.Writer, seconds time.Duration, only string) error {
	dir, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, seconds: seconds, out: out}
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("no section %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	fmt.Fprintf(out, "%s, %s/%s, %d CPUs\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	cost, err := b.syncCost()
	if err != nil {
		return err
	}
	b.add("one overwrite + fdatasync, p50", ms(cost), "", "")
	for _, s := range sections {
		if len(wanted) > 0 && !slices.Contains(wanted, s.name) {
			continue
		}
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return b.print()
}

// add records a line of the table.
func (b *bench) add(what, figure, beside, ratio string) {
	b.rows = append(b.rows, row{what, figure, beside, ratio})
	fmt.Fprintf(os.Stderr, "  %s: %s (%s; %s)\n", what, figure, beside, ratio)
}

func (b *bench) print() error {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tmeasured\tbeside\tratio (target)")
	for _, r := range b.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.figure, r.beside, r.ratio)
	}
	return w.Flush()
}

// fresh makes an empty directory.
func (b *bench) fresh() (string, error) {
	b.n++
	dir := filepath.Join(b.dir, fmt.Sprint(b.n))
	return dir, os.Mkdir(dir, 0o700)
}

// percentile returns the p-th percentile of the samples, p from 0 to 100.
func percentile(samples []time.Duration, p float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(int(float64(len(sorted))*p/100), len(sorted)-1)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

func perSecond(n float64) string { return fmt.Sprintf("%.0f/s", n) }
