package conversation

import (
	"encoding/json/jsontext"
	"testing"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// Only decisions with the transcript's ids and source are read as records; a
// damaged one is skipped (C-15.13, C-15.14), an older one read without what it
// lacks (C-15.9, C-43.1, C-43.2).
func TestRecordOf(t *testing.T) {
	const (
		user   = `{"turn":1,"ord":1,"role":"user","status":"accepted","text":"hi","asker":{"actor":"ann"},"time":"2030-01-02T03:04:05.678Z"}`
		reply  = `{"turn":1,"ord":2,"role":"assistant","status":"complete","text":"ho","time":"2030-01-02T03:04:05.678Z"}`
		failed = `{"turn":1,"ord":2,"role":"assistant","status":"failed","reason":"denied","errorId":"x","time":"2030-01-02T03:04:05.678Z"}`
	)
	decided := func(source kernel.Source, value string) kernel.Decided {
		return kernel.Decided{Source: source, Value: jsontext.Value(value)}
	}
	with := func(d kernel.Decided, change func(*kernel.Decided)) kernel.Decided {
		change(&d)
		return d
	}
	for _, test := range []struct {
		name, kind, id string
		data           kernel.Decided
		ok             bool
	}{
		{"a message", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, user), true},
		{"a reply", kernel.KindDecided, "conv#o12:reply", decided(SourceRecord, reply), true},
		{"a failure", kernel.KindDecided, "conv#o1:reply", decided(SourceRecord, failed), true},
		{"without ord", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `{"turn":1,"role":"user","status":"accepted","text":"hi","time":"2030-01-02T03:04:05Z"}`), true},
		{"a rejection with a turn number", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `{"turn":3,"ord":1,"role":"user","status":"rejected","reason":"stale","time":"2030-01-02T03:04:05Z"}`), true},
		{"with a field of a later version", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `{"turn":1,"ord":1,"role":"user","status":"accepted","editOf":7,"time":"2030-01-02T03:04:05Z"}`), true},

		{"another kind", kernel.KindSettled, "conv#o1:user", decided(SourceRecord, user), false},
		{"another source", kernel.KindDecided, "conv#o1:user", decided("agent-checkpoint", user), false},
		{"admission", kernel.KindDecided, "conv#o1:admit", decided(SourceRecord, user), false},
		{"close", kernel.KindDecided, "conv#closed", decided(SourceRecord, user), false},
		{"the loop's", kernel.KindDecided, "conv#o1#tool:1.1:user", decided(SourceRecord, user), false},
		{"ordinal 0", kernel.KindDecided, "conv#o0:user", decided(SourceRecord, user), false},
		{"ordinal 01", kernel.KindDecided, "conv#o01:user", decided(SourceRecord, user), false},
		{"no ordinal", kernel.KindDecided, "conv#o:user", decided(SourceRecord, user), false},
		{"inside another decision", kernel.KindDecided, "conv#o1:user", with(decided(SourceRecord, user), func(d *kernel.Decided) { d.In = "conv#o1:reply" }), false},
		{"a fault", kernel.KindDecided, "conv#o1:user", kernel.Decided{Source: SourceRecord, Fault: "PANIC"}, false},
		{"no value", kernel.KindDecided, "conv#o1:user", kernel.Decided{Source: SourceRecord}, false},
		{"a reply under a message's id", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, reply), false},
		{"an accepted message without a turn", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `{"turn":0,"ord":1,"role":"user","status":"accepted","time":"2030-01-02T03:04:05Z"}`), false},
		{"a rejection without a reason", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `{"turn":0,"ord":1,"role":"user","status":"rejected","time":"2030-01-02T03:04:05Z"}`), false},
		{"a failure for a reason of its own", kernel.KindDecided, "conv#o1:reply", decided(SourceRecord, `{"turn":1,"ord":1,"role":"assistant","status":"failed","reason":"dial secret.host","time":"2030-01-02T03:04:05Z"}`), false},
		{"a status of its own", kernel.KindDecided, "conv#o1:reply", decided(SourceRecord, `{"turn":1,"ord":1,"role":"assistant","status":"done","time":"2030-01-02T03:04:05Z"}`), false},
		{"a negative ord", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `{"turn":1,"ord":-1,"role":"user","status":"accepted","time":"2030-01-02T03:04:05Z"}`), false},
		{"without a time", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `{"turn":1,"ord":1,"role":"user","status":"accepted"}`), false},
		{"an asker that is none", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `{"turn":1,"ord":1,"role":"user","status":"accepted","asker":{},"time":"2030-01-02T03:04:05Z"}`), false},
		{"no object", kernel.KindDecided, "conv#o1:user", decided(SourceRecord, `"hello"`), false},
	} {
		event := journal.Event{Kind: test.kind, ID: test.id, Data: encoded(t, test.data)}
		r, ok := RecordOf(event)
		if ok != test.ok {
			t.Errorf("%s: RecordOf = %+v, %v; want %v", test.name, r, ok, test.ok)
		}
	}
	damaged := journal.Event{Kind: kernel.KindDecided, ID: "conv#o1:user", Data: []byte(`{"source":`)}
	if _, ok := RecordOf(damaged); ok {
		t.Error("a damaged event is read as a record")
	}
	forged := journal.Event{Kind: kernel.KindDecided, ID: "conv#o1:user", Data: encoded(t, decided(SourceRecord, `{"turn":1,"ord":1,"role":"user","status":"accepted","time":"2030-01-02T03:04:05Z","cursor":"7.7"}`))}
	if r, ok := RecordOf(forged); !ok || r.Cursor != (Cursor{}) {
		t.Errorf("a record that brings its own cursor is read as %+v, %v", r, ok)
	}
}
