package conversation

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// fullCarry is a carry at the limits of every field: turns of the given number
// and size, a full replay set, a pending message of the largest size.
func fullCarry(turns, chars, maxTurnChars int) Carry {
	field := strings.Repeat("\x01", identity.MaxFieldBytes) // the dearest in JSON
	asker := &identity.Identity{Tenant: identity.Some(field), Actor: field, OnBehalfOf: identity.Some(field)}
	const most = 1 << 49
	c := Carry{V: carryVersion, Seq: most, Ord: most, Rec: 2 * most, Invalid: most / 2, Dropped: most / 2}
	c.Floor = math.MaxInt64
	for i := range maxSeen {
		c.Seen = append(c.Seen, Seen{Key: fmt.Sprintf("%064x", i), IssuedAt: 1<<53 - 1, Turn: true})
	}
	var called []string
	for n := range min(chars, maxCalledTools) {
		called = append(called, fmt.Sprintf("%0*d", maxToolName, n))
	}
	for i := range turns {
		c.Turns = append(c.Turns, Turn{
			Turn: i + 1, Ord: 2*i + 1, Asker: asker, Status: StatusInterrupted,
			User: taint.Tainted(strings.Repeat("q", chars), taint.OriginUser), Reply: strings.Repeat("r", chars),
			Edits: taint.Tainted(strings.Repeat("\x01", min(chars, maxQuote)), taint.OriginUser), Called: called,
		})
	}
	c.Pending.Origin = taint.OriginUser
	c.Pending.Value = jsontext.Value(`"` + strings.Repeat("x", maxEnvelopeBytes(maxTurnChars)-2) + `"`)
	return c
}

// A carry at the limits of every field, under the widest settings, stays under
// the kernel's limit, and is read again (C-19.7, C-19.8, C-11.17).
func TestFullCarryFits(t *testing.T) {
	t.Parallel()
	for _, settings := range []Settings{
		{}, {MaxTurnChars: 118_000}, {MaxCarryBytes: minCarryBytes, MaxTurnChars: 140_000}, {MaxCarryBytes: 700_000}, {MaxWindowTurns: maxWindowTurns},
	} {
		settings = settings.withDefaults()
		if err := settings.check(); err != nil {
			t.Fatal(err)
		}
		c := fullCarry(settings.MaxWindowTurns+1, 1000, settings.MaxTurnChars).trim(settings.MaxCarryBytes)
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > kernel.MaxCarryBytes {
			t.Errorf("%+v: the carry has %d bytes", settings, len(data))
		}
		if len(c.Turns) > 0 && len(data) > settings.MaxCarryBytes {
			t.Errorf("%+v: the carry has %d bytes and still %d turns", settings, len(data), len(c.Turns))
		}
		if _, err := CarryOf(data, 1); err != nil {
			t.Errorf("%+v: the conversation refuses its own carry: %v", settings, err)
		}
		bare := c
		bare.Turns, bare.Pending.Value = nil, jsontext.Value("0")
		if n := jsonBytes(bare); n > fixedCarryBytes {
			t.Errorf("what is never trimmed has %d bytes, more than the %d that are set aside", n, fixedCarryBytes)
		}
	}
}

// The trim drops the oldest turns, is pure, deterministic and idempotent, and
// drops no more than it must (C-19.7).
func TestTrim(t *testing.T) {
	c := fullCarry(30, 1000, 100)
	whole, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, limit := range []int{len(whole), len(whole) - 1, len(whole) - 8000, 170_000, 120_000, 1000} {
		trimmed := c.trim(limit)
		if again := c.trim(limit); !cmp.Equal(len(trimmed.Turns), len(again.Turns)) {
			t.Errorf("trim to %d kept %d turns, then %d", limit, len(trimmed.Turns), len(again.Turns))
		}
		if twice := trimmed.trim(limit); len(twice.Turns) != len(trimmed.Turns) {
			t.Errorf("trimmed to %d twice, %d turns became %d", limit, len(trimmed.Turns), len(twice.Turns))
		}
		if after, err := json.Marshal(c); err != nil || string(after) != string(whole) {
			t.Fatal("the trim changed the carry that it was given")
		}
		n := len(trimmed.Turns)
		if n > 0 && (jsonBytes(trimmed) > limit || trimmed.Turns[n-1].Turn != 30 || trimmed.Turns[0].Turn != 31-n) {
			t.Errorf("trim to %d: %d bytes, turns %d to %d", limit, jsonBytes(trimmed), trimmed.Turns[0].Turn, trimmed.Turns[n-1].Turn)
		}
		more := c
		more.Turns = c.Turns[max(0, 30-n-1):]
		if n < 30 && jsonBytes(more) < limit-1 {
			t.Errorf("trim to %d kept %d turns where one more has room", limit, n)
		}
		if last >= 0 && n > last {
			t.Errorf("trim to %d kept %d turns, a wider one %d", limit, n, last)
		}
		last = n
	}
	if last != 0 {
		t.Errorf("trim to less than what is fixed kept %d turns", last)
	}
}

// The carry of C-19.6, byte for byte: an earlier build wrote it so.
func TestCarryBytes(t *testing.T) {
	c := Carry{V: 1, Seq: 2, Ord: 4, Rec: 5, Invalid: 1, Dropped: 0}
	c.Seen = []Seen{{strings.Repeat("ab", 32), 7, true}, {strings.Repeat("cd", 32), 8, false}}
	c.Floor = 6
	c.Turns = []Turn{{Turn: 2, Ord: 4, Asker: &ann.Identity, User: taint.Tainted("hi", taint.OriginUser), Reply: "ho", Status: StatusComplete}}
	c.Pending.Origin, c.Pending.Value = taint.OriginUser, jsontext.Value(`{"body":{},"sig":""}`)
	want := `{"v":1,"seq":2,"ord":4,"rec":5,` +
		`"ids":[{"key":"` + strings.Repeat("ab", 32) + `","iat":7,"turn":true},{"key":"` + strings.Repeat("cd", 32) + `","iat":8}],"floor":6,` +
		`"invalid":1,"turns":[{"turn":2,"ord":4,"asker":{"tenant":"acme","actor":"ann"},` +
		`"user":{"tainted":"conversation:user","value":"hi"},"reply":"ho","status":"complete"}],` +
		`"pending":{"tainted":"conversation:user","value":{"body":{},"sig":""}}}`
	if got := string(encoded(t, c)); got != want {
		t.Errorf("carry\n got %s\nwant %s", got, want)
	}
	read, err := CarryOf([]byte(want), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(encoded(t, read)); got != want {
		t.Errorf("read and written again\n got %s\nwant %s", got, want)
	}
}

// What is no carry is refused whole (C-11.12, C-11.17): shape, counts, texts,
// size and depth; and in generation 0 everything but a stamp.
func TestCarryOfRefuses(t *testing.T) {
	good := string(encoded(t, fullCarry(3, 10, 100)))
	for _, test := range []struct{ name, input string }{
		{"nothing", ""},
		{"no object", "[]"},
		{"a stamp", string(encoded(t, Stamp(&ann.Identity)))},
		{"another version", strings.Replace(good, `"v":1`, `"v":2`, 1)},
		{"an unknown field", strings.Replace(good, `"v":1`, `"v":1,"x":0`, 1)},
		{"a field twice", strings.Replace(good, `"v":1`, `"v":1,"v":1`, 1)},
		{"a negative count", strings.Replace(good, `"invalid":`, `"invalid":-`, 1)},
		{"more turns than envelopes", strings.Replace(good, `"ord":562949953421312`, `"ord":1`, 1)},
		{"a huge count", strings.Replace(good, `"rec":1125899906842624`, `"rec":9223372036854775807`, 1)},
		{"an id that is none", strings.Replace(good, strings.Repeat("0", 64), strings.Repeat("g", 64), 1)},
		{"turns out of order", strings.Replace(good, `{"turn":2,`, `{"turn":1,`, 1)},
		{"a plain user text", strings.Replace(good, `{"tainted":"conversation:user","value":"qqqqqqqqqq"}`, `"qqqqqqqqqq"`, 1)},
		{"a status that is none", strings.Replace(good, `"interrupted"`, `"accepted"`, 1)},
		{"nothing pending", good[:strings.Index(good, `,"pending"`)] + "}"},
		{"a plain pending", good[:strings.Index(good, `"pending"`)] + `"pending":{}}`},
		{"deep", strings.Repeat(`{"v":`, 9000) + "1" + strings.Repeat("}", 9000)},
		{"long", strings.Replace(good, "qqqqqqqqqq", strings.Repeat("q", kernel.MaxCarryBytes), 1)},
		{"many turns", strings.Replace(good, `"turns":[`, `"turns":[`+strings.Repeat("{},", maxCarriedTurns), 1)},
		{"not UTF-8", strings.Replace(good, "qqqqqqqqqq", "\xff", 1)},
	} {
		if test.input == good {
			t.Fatalf("%s: the case changes nothing", test.name)
		}
		if _, err := CarryOf([]byte(test.input), 1); err == nil {
			t.Errorf("%s: CarryOf takes it", test.name)
		}
	}
	if _, err := CarryOf([]byte(good), 1); err != nil {
		t.Errorf("CarryOf refuses a good carry: %v", err)
	}
	if _, err := CarryOf([]byte(good), 0); err == nil {
		t.Error("in generation 0 a carry is taken")
	}
	for _, owner := range []*identity.Identity{nil, &ann.Identity} {
		if c, err := CarryOf(encoded(t, Stamp(owner)), 0); err != nil || c.Ord != 0 || c.Turns != nil {
			t.Errorf("CarryOf of a stamp = %+v, %v", c, err)
		}
	}
}

// FuzzCarryOf: no input makes it fail, and what it takes is within the bounds
// and reads the same again.
func FuzzCarryOf(f *testing.F) {
	f.Add([]byte(encoded(f, Stamp(&ann.Identity))), 0)
	f.Add([]byte(encoded(f, Stamp(nil))), 0)
	f.Add([]byte(`{"v":1,"seq":0,"ord":1,"rec":1,"ids":[],"turns":[],"pending":{"tainted":"conversation:user","value":null}}`), 1)
	small := fullCarry(2, 3, 1) // short fields: to shorten a long seed takes the fuzzer a minute each time
	small.Seen = small.Seen[:2]
	small.Turns[0].Asker, small.Turns[1].Asker = &ann.Identity, nil
	small.Pending.Value = jsontext.Value(`{"body":{},"sig":""}`)
	f.Add([]byte(encoded(f, small)), 2)
	f.Fuzz(func(t *testing.T, input []byte, generation int) {
		c, err := CarryOf(input, generation)
		if err != nil {
			if strings.Contains(err.Error(), string(input)) && len(input) > 8 {
				t.Errorf("the error repeats the input: %v", err)
			}
			return
		}
		if generation == 0 {
			return
		}
		if len(c.Seen) > maxSeen || len(c.Turns) > maxCarriedTurns || c.Seq > c.Ord {
			t.Errorf("%q is taken as %d ids, %d turns, %d of %d", input, len(c.Seen), len(c.Turns), c.Seq, c.Ord)
		}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("what was read of %q cannot be written: %v", input, err)
		}
		if _, err := CarryOf(data, generation); err != nil {
			t.Errorf("%q is taken, and %q refused", input, data)
		}
	})
}
