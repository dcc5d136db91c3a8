package identity_test

import (
	"encoding/json/v2"
	"strings"
	"testing"

	"github.com/parley-run/parley/identity"
)

var absent identity.Field

// people returns an identity for every combination of awkward fields.
func people() []identity.Identity {
	texts := []string{
		"", "a", "ab", "bc", "c", "b", "null", `"`, `\`, `","`, `a","b`, `["ff"]`, "\x00", "\n", "<&>",
		"é", "e\u0301", "\u2028", "\ufffd", "\xff", "\xfe", "A",
	}
	fields := []identity.Field{absent}
	for _, text := range texts {
		fields = append(fields, identity.Some(text))
	}
	var all []identity.Identity
	for _, tenant := range fields {
		for _, actor := range texts {
			for _, behalf := range fields {
				all = append(all, identity.Identity{Tenant: tenant, Actor: actor, OnBehalfOf: behalf})
			}
		}
	}
	return all
}

// C-2.3, C-2.4: one by one, absent agreeing with absent only.
func TestEquality(t *testing.T) {
	ann := identity.Identity{Tenant: identity.Some("acme"), Actor: "ann"}
	tests := map[string]struct {
		a, b identity.Identity
		want bool
	}{
		"same fields":               {ann, identity.Identity{Tenant: identity.Some("acme"), Actor: "ann"}, true},
		"both without tenant":       {identity.Identity{Actor: "ann"}, identity.Identity{Actor: "ann"}, true},
		"tenant absent and set":     {ann, identity.Identity{Actor: "ann"}, false},
		"tenant absent and empty":   {identity.Identity{Tenant: identity.Some(""), Actor: "ann"}, identity.Identity{Actor: "ann"}, false},
		"tenant empty and empty":    {identity.Identity{Tenant: identity.Some(""), Actor: "ann"}, identity.Identity{Tenant: identity.Some(""), Actor: "ann"}, true},
		"another tenant":            {ann, identity.Identity{Tenant: identity.Some("apex"), Actor: "ann"}, false},
		"another actor":             {ann, identity.Identity{Tenant: identity.Some("acme"), Actor: "bob"}, false},
		"case matters":              {ann, identity.Identity{Tenant: identity.Some("acme"), Actor: "Ann"}, false},
		"a delegate is another":     {ann, identity.Identity{Tenant: identity.Some("acme"), Actor: "ann", OnBehalfOf: identity.Some("ann")}, false},
		"delegate absent and empty": {ann, identity.Identity{Tenant: identity.Some("acme"), Actor: "ann", OnBehalfOf: identity.Some("")}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.a == tt.b; got != tt.want {
				t.Errorf("%+v == %+v is %t, want %t", tt.a, tt.b, got, tt.want)
			}
			if got := tt.a.Key() == tt.b.Key(); got != tt.want {
				t.Errorf("keys %s and %s equal: %t, want %t", tt.a.Key(), tt.b.Key(), got, tt.want)
			}
		})
	}
}

// C-2.9: two identities share a key iff they are equal; no combination of
// fields, invalid ones included, meets another.
func TestKeysNeverCollide(t *testing.T) {
	owner := map[string]identity.Identity{}
	for _, id := range people() {
		if other, taken := owner[id.Key()]; taken {
			t.Fatalf("%+v and %+v share the key %s", other, id, id.Key())
		}
		owner[id.Key()] = id
	}
}

// C-2.7: the sender is bound to the message, and nothing moves between the
// four values.
func TestSenderKeysNeverCollide(t *testing.T) {
	type message struct {
		sender identity.Identity
		id     string
	}
	owner := map[string]message{}
	for _, actor := range []string{"", "a", "ab", "\xff", "\xfe"} {
		for _, behalf := range []identity.Field{absent, identity.Some(""), identity.Some("b"), identity.Some("bc")} {
			for _, id := range []string{"", "bc", "c", "b", "\xff", "\xfe", `["ff"]`} {
				m := message{identity.Identity{Actor: actor, OnBehalfOf: behalf}, id}
				key := m.sender.SenderKey(m.id)
				if other, taken := owner[key]; taken {
					t.Fatalf("SenderKey: %+v and %+v share %s", other, m, key)
				}
				owner[key] = m
			}
		}
	}
}

// C-2.8: known answers, made with sha256sum over the text in the comment.
func TestSenderKeyKnownAnswers(t *testing.T) {
	some := identity.Some
	tests := []struct {
		over    string
		id      identity.Identity
		message string
		want    string
	}{
		{
			`["acme","ann",null,"m1"]`,
			identity.Identity{Tenant: some("acme"), Actor: "ann"},
			"m1",
			"8774c71681a17ce42e3bede936ed0287856f7af8e337c7388615606b9126cca7",
		},
		{
			`[null,"ann",null,"m1"]`,
			identity.Identity{Actor: "ann"},
			"m1",
			"715396ac2bdc04d147b8e643bf6dea7d492f374fa4a2cbdfee457224678f5157",
		},
		{
			`["","ann",null,"m1"]`,
			identity.Identity{Tenant: some(""), Actor: "ann"},
			"m1",
			"ce1de45364151436f7cac5fbfe1cb4dec21a3df01035f0c0f0d47b7ae5a7677c",
		},
		{
			`["acme","ann","bob","m1"]`,
			identity.Identity{Tenant: some("acme"), Actor: "ann", OnBehalfOf: some("bob")},
			"m1",
			"3c9ce9cf02370deb016c3495fc272e1b6b0d15c5346ffd33e8677c1b7aabc9b5",
		},
		{
			`[null,null,null,""]`,
			identity.Identity{},
			"",
			"33fb0830be67672c36f046ae4e857a50287eb5fabdd676d047bdb0ec3df4ae3d",
		},
		{
			`["<a&b>","ann \"q\" é",null,"\n"]`,
			identity.Identity{Tenant: some("<a&b>"), Actor: `ann "q" é`},
			"\n",
			"60da09db8ea987caec76358de69f55108ebe93371e9bb723a6108c59e4785406",
		},
	}
	for _, tt := range tests {
		if got := tt.id.SenderKey(tt.message); got != tt.want {
			t.Errorf("SenderKey over %s = %s, want %s", tt.over, got, tt.want)
		}
	}
}

// C-2.9, C-2.8: the key escapes as the hash does, HTML characters not at all.
func TestKeyForm(t *testing.T) {
	id := identity.Identity{Tenant: identity.Some("<a&b>\u2028"), Actor: "a\"\\\x00\n/", OnBehalfOf: absent}
	want := "[\"<a&b>\u2028\",\"a\\\"\\\\\\u0000\\n/\",null]"
	if got := id.Key(); got != want {
		t.Errorf("Key() = %s, want %s", got, want)
	}
}

// C-2.5, C-2.10.
func TestValidate(t *testing.T) {
	full := strings.Repeat("é", identity.MaxFieldBytes/2)
	tests := map[string]struct {
		id identity.Identity
		ok bool
	}{
		"nobody":               {identity.Identity{}, false},
		"no actor":             {identity.Identity{Tenant: identity.Some("acme"), OnBehalfOf: identity.Some("bob")}, false},
		"actor alone":          {identity.Identity{Actor: "ann"}, true},
		"empty tenant":         {identity.Identity{Tenant: identity.Some(""), Actor: "ann"}, true},
		"all fields at limit":  {identity.Identity{Tenant: identity.Some(full), Actor: full, OnBehalfOf: identity.Some(full)}, true},
		"tenant too long":      {identity.Identity{Tenant: identity.Some(full + "x"), Actor: "ann"}, false},
		"actor too long":       {identity.Identity{Actor: full + "x"}, false},
		"onBehalfOf too long":  {identity.Identity{Actor: "ann", OnBehalfOf: identity.Some(full + "x")}, false},
		"tenant not UTF-8":     {identity.Identity{Tenant: identity.Some("\xff"), Actor: "ann"}, false},
		"actor not UTF-8":      {identity.Identity{Actor: "ann\xff"}, false},
		"onBehalfOf not UTF-8": {identity.Identity{Actor: "ann", OnBehalfOf: identity.Some("\xff")}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.id.Validate()
			if (err == nil) != tt.ok {
				t.Errorf("Validate() = %v, want ok: %t", err, tt.ok)
			}
			if err != nil && tt.id.Actor != "" && strings.Contains(err.Error(), tt.id.Actor) {
				t.Errorf("Validate() = %v, which repeats a field", err)
			}
		})
	}
}

func TestParse(t *testing.T) {
	some := identity.Some
	tests := map[string]struct {
		data string
		want identity.Identity
		ok   bool
	}{
		"all":                {`{"tenant":"acme","actor":"ann","onBehalfOf":"bob"}`, identity.Identity{Tenant: some("acme"), Actor: "ann", OnBehalfOf: some("bob")}, true},
		"actor alone":        {`{"actor":"ann"}`, identity.Identity{Actor: "ann"}, true},
		"empty is not null":  {`{"tenant":"","actor":"ann"}`, identity.Identity{Tenant: some(""), Actor: "ann"}, true},
		"null is absent":     {`{"tenant":null,"actor":"ann"}`, identity.Identity{Actor: "ann"}, true},
		"null":               {`null`, identity.Identity{}, false},
		"no actor":           {`{"tenant":"acme"}`, identity.Identity{}, false},
		"null actor":         {`{"actor":null}`, identity.Identity{}, false},
		"empty actor":        {`{"actor":""}`, identity.Identity{}, false},
		"unknown member":     {`{"actor":"ann","credential":"hunter2"}`, identity.Identity{}, false},
		"two actors":         {`{"actor":"ann","actor":"bob"}`, identity.Identity{}, false},
		"case of a name":     {`{"Actor":"ann"}`, identity.Identity{}, false},
		"a number":           {`{"tenant":1,"actor":"ann"}`, identity.Identity{}, false},
		"an object":          {`{"tenant":{},"actor":"ann"}`, identity.Identity{}, false},
		"not UTF-8":          {"{\"actor\":\"ann\xff\"}", identity.Identity{}, false},
		"half a surrogate":   {`{"actor":"\ud800"}`, identity.Identity{}, false},
		"two values":         {`{"actor":"ann"}{"actor":"bob"}`, identity.Identity{}, false},
		"cut":                {`{"actor":"ann"`, identity.Identity{}, false},
		"field over limit":   {`{"actor":"` + strings.Repeat("a", identity.MaxFieldBytes+1) + `"}`, identity.Identity{}, false},
		"escaped to the max": {`{"actor":"` + strings.Repeat(`\u0061`, identity.MaxFieldBytes) + `"}`, identity.Identity{Actor: strings.Repeat("a", identity.MaxFieldBytes)}, true},
		"too many bytes":     {`{"actor":"ann"` + strings.Repeat(" ", 8<<10) + `}`, identity.Identity{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := identity.Parse([]byte(tt.data))
			if got != tt.want || (err == nil) != tt.ok {
				t.Errorf("Parse(%.80s) = %+v, %v, want %+v, ok: %t", tt.data, got, err, tt.want, tt.ok)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Parse(%s) = %v, which repeats the input", tt.data, err)
			}
		})
	}
}

// C-2.3 in logs and records: absent, empty and set come back as they were.
func TestJSONRoundTrip(t *testing.T) {
	for _, id := range people() {
		if id.Validate() != nil {
			continue
		}
		data, err := json.Marshal(id)
		if err != nil {
			t.Fatalf("Marshal(%+v): %v", id, err)
		}
		if got, err := identity.Parse(data); err != nil || got != id {
			t.Fatalf("Parse(%s) = %+v, %v, want %+v", data, got, err, id)
		}
	}
}

func TestFieldValue(t *testing.T) {
	for _, tt := range []struct {
		field identity.Field
		text  string
		set   bool
	}{{absent, "", false}, {identity.Some(""), "", true}, {identity.Some("x"), "x", true}} {
		if text, set := tt.field.Value(); text != tt.text || set != tt.set {
			t.Errorf("Value() = %q, %t, want %q, %t", text, set, tt.text, tt.set)
		}
	}
	data, err := json.Marshal([]identity.Field{absent, identity.Some(""), identity.Some("x")})
	if want := `[null,"","x"]`; err != nil || string(data) != want {
		t.Errorf("Marshal = %s, %v, want %s", data, err, want)
	}
}

// FuzzParse: whatever a stranger sends, an accepted identity is valid and
// comes back from its own JSON as itself.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"tenant":"acme","actor":"ann","onBehalfOf":null}`))
	f.Add([]byte(`{"actor":"\u0000"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := identity.Parse(data)
		if err != nil {
			if id != (identity.Identity{}) {
				t.Fatalf("Parse(%q) = %+v with error %v", data, id, err)
			}
			return
		}
		if err := id.Validate(); err != nil {
			t.Fatalf("Parse(%q) accepted what Validate refuses: %v", data, err)
		}
		again, err := json.Marshal(id)
		if err != nil {
			t.Fatalf("Marshal(%+v): %v", id, err)
		}
		if back, err := identity.Parse(again); err != nil || back != id {
			t.Fatalf("Parse(%s) = %+v, %v, want %+v", again, back, err, id)
		}
	})
}
