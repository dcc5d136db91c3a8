package journaltest

import (
	"bufio"
	"encoding/json/jsontext"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/parley-run/parley/journal"
)

const (
	childVariable = "PARLEY_JOURNALTEST_CHILD" // the place, in the process that will be killed
	acknowledged  = "acknowledged"             // begins a line of it: acknowledged STREAM NEXT

	killRounds  = 3
	killWriters = 8
	killAfter   = 150 // acknowledgements before a kill
	killBatch   = 3   // events of one append to the writer's own stream
)

func childPlace() (string, bool) { return os.LookupEnv(childVariable) }

// appendUntilKilled is the life of the child: several writers append as fast as
// they can, and say of each append that it was acknowledged. Each batch has
// three events for the writer's own stream, one for a stream that all share, and
// a row that tells where the own stream ends.
func appendUntilKilled(t *testing.T, s journal.Store) {
	rivals(killWriters, func(i int) {
		stream := fmt.Sprint("writer", i)
		next, _, err := s.HeadOf(t.Context(), stream)
		for err == nil {
			end := next + killBatch
			err = s.Append(t.Context(),
				journal.Append{Stream: stream, Expect: next, Events: numbered(stream, next, killBatch), Rows: []journal.Row{{
					Space: "ends", Key: stream, Data: jsontext.Value(fmt.Sprint(end)),
				}}},
				journal.Append{Stream: "shared", Expect: journal.AtEnd, Events: numbered(stream, next, 1)})
			next = end
			if err == nil {
				_, err = fmt.Fprintf(os.Stdout, "%s %s %d\n", acknowledged, stream, next) // one write
			}
		}
		t.Errorf("writer %d: %v", i, err)
	})
}

func numbered(stream string, from journal.Seq, n int) []journal.Event {
	events := make([]journal.Event, n)
	for i := range events {
		events[i] = journal.Event{Kind: "FACT", ID: fmt.Sprint(stream, "-", from+journal.Seq(i))}
	}
	return events
}

// kill: a process is killed (SIGKILL) in the middle of its appends. What it
// acknowledged is there, streams have no gaps, and batches are whole (C-3.8).
func kill(t *testing.T, open func(t *testing.T, place string) journal.Store) {
	place := t.TempDir()
	for round := range killRounds {
		ends := killChild(t, place)
		s := open(t, place)
		shared := len(read(t, s, "shared", 0, 1<<20, journal.Forward))
		batches := 0
		for i := range killWriters {
			stream := fmt.Sprint("writer", i)
			events := wantNumbered(t, s, stream)
			batches += len(events) / killBatch
			if len(events)%killBatch != 0 {
				t.Errorf("round %d: %q has %d events, a batch was torn", round, stream, len(events))
			}
			if journal.Seq(len(events)) < ends[stream] {
				t.Errorf("round %d: %q has %d events, and %d were acknowledged", round, stream, len(events), ends[stream])
			}
		}
		if shared != batches {
			t.Errorf("round %d: the shared stream has %d events, and there are %d batches", round, shared, batches)
		}
		wantEnds(t, s)
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// killChild starts this test binary again, kills it after some
// acknowledgements, and returns all that it got to say: the acknowledged end of
// each stream.
func killChild(t *testing.T, place string) map[string]journal.Seq {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	child.Env = append(os.Environ(), childVariable+"="+place)
	var stderr strings.Builder
	child.Stderr = &stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ends := make(map[string]journal.Seq)
	acks := 0
	var other []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var stream string
		var next journal.Seq
		if _, err := fmt.Sscanf(lines.Text(), acknowledged+" %s %d", &stream, &next); err != nil {
			other = append(other, lines.Text())
			continue
		}
		ends[stream] = max(ends[stream], next)
		if acks++; acks == killAfter {
			if err := child.Process.Kill(); err != nil {
				t.Errorf("kill: %v", err)
			}
		}
	}
	_ = child.Wait() // it was killed
	if acks < killAfter {
		t.Fatalf("the child ended by itself after %d acknowledgements:\n%s\n%s", acks, strings.Join(other, "\n"), stderr.String())
	}
	return ends
}

// wantNumbered checks a writer's own stream event by event.
func wantNumbered(t *testing.T, s journal.Store, stream string) []journal.Event {
	t.Helper()
	events := read(t, s, stream, 0, 1<<20, journal.Forward)
	for i, event := range events {
		if want := fmt.Sprint(stream, "-", i); event.Seq != journal.Seq(i) || event.ID != want {
			t.Fatalf("event %d of %q has sequence %d and id %q, want %q", i, stream, event.Seq, event.ID, want)
		}
	}
	return events
}

// wantEnds checks that each row agrees with the stream that it was written with.
func wantEnds(t *testing.T, s journal.Store) {
	t.Helper()
	rows, err := s.List(t.Context(), "ends", "", "", 1000, journal.Forward)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for _, row := range rows {
		next, _, err := s.HeadOf(t.Context(), row.Key)
		if err != nil || fmt.Sprint(next) != string(row.Data) {
			t.Errorf("the row of %q says that it ends at %s, and it ends at %d, %v", row.Key, row.Data, next, err)
		}
	}
}
