package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/server/issuer"
)

// sharingFile reads a configuration file with an MCP server "files" and what is
// given.
func sharingFile(t *testing.T, text string) (Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley.toml")
	if err := os.WriteFile(path, []byte("mcp.files.command = \"files\"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadSettings(path)
}

// C-36.3, C-37.1: what in the configuration cannot mean what it says is refused with
// the place of it, and no value is repeated.
func TestSharingErrors(t *testing.T) {
	const issuers = "[oidc]\nissuer = \"https://login.example.org\"\naudience = \"parley\"\n"
	const rule = "[[sharing.people]]\neverybody = true\nmanages = true\n"
	for name, test := range map[string]struct{ file, want string }{
		"unknown key":                {"[sharing]\ntool = 1\n", `:3:1: unknown key "sharing.tool"; the keys of sharing are tools, people`},
		"unknown key of a rule":      {rule + "clear = [\"sekrit\"]\n", `:5:1: unknown key "sharing.people.clear"; the keys of a rule are tenant, actor,`},
		"wrong type":                 {"[sharing.tools]\nclock = \"sekrit\"\n", `:3:9: key "sharing.tools.clock" has a value of the wrong type`},
		"no tool":                    {"[sharing.tools]\nclock = []\nflies_read = [\"sekrit\"]\n", `:4:1: sharing.tools.flies_read: it fits no tool`},
		"no tools":                   {"[sharing.tools]\n\"flies_*\" = [\"sekrit\"]\n", `:3:1: sharing.tools."flies_*": it fits no tool`},
		"no name of tools":           {"[sharing.tools]\n\"f*es\" = []\n", `:3:1: sharing.tools."f*es": it is no name of tools`},
		"a class with a star":        {"[sharing]\ntools.clock = [\"sekrit*\"]\n", `:3:1: sharing.tools.clock: a class is a text`},
		"an empty class":             {"[sharing.tools]\n\n\n\"files_*\" = [\"a\", \"\"]\n", `:5:1: sharing.tools."files_*": a class is`},
		"rule for nobody":            {rule + "[[sharing.people]]\nclears = []\nstarts = true\n", `:5:3: sharing.people[2]: it names nobody`},
		"rule of nothing":            {rule + "\n[[sharing.people]]\nactor = \"sekrit\"\n", `:6:3: sharing.people[2]: it lets people do nothing`},
		"everybody beside somebody":  {"[[sharing.people]]\nactor = \"sekrit\"\neverybody = true\nstarts = true\n", `:4:1: sharing.people[1].everybody: it stands for itself`},
		"actor beside actors":        {"[[sharing.people]]\nactor = \"sekrit\"\nactors = [\"sekrit\"]\nstarts = true\n", `:4:1: sharing.people[1].actors: it goes in place`},
		"a tool without a name":      {"[sharing.tools]\n\"\" = []\n", `:3:1: sharing.tools."": it is no name of tools`},
		"the server's own actor":     {"[[sharing.people]]\nactor = \"parley:sekrit\"\nstarts = true\n", `:3:1: sharing.people[1].actor: actors that begin with "parley:" are the server's own`},
		"the server's among others":  {"[[sharing.people]]\ntenant = \"a\"\nactors = [\"b\", \"parley:service\"]\nstarts = true\n", `:4:1: sharing.people[1].actors: actors that begin with`},
		"a long actor":               {"[[sharing.people]]\nstarts = true\nactor = \"" + strings.Repeat("a", 257) + "\"\n", `:4:1: sharing.people[1].actor: whom a rule names`},
		"a long tenant":              {"[[sharing.people]]\nstarts = true\nactor = \"a\"\ntenant = \"" + strings.Repeat("a", 257) + "\"\n", `:5:1: sharing.people[1].tenant: a tenant is a text`},
		"empty actor":                {"[[sharing.people]]\nactors = [\"a\", \"\"]\nstarts = true\n", `:3:1: sharing.people[1].actors: `},
		"claim without an issuer":    {"[[sharing.people]]\nclaim = {groups = \"sekrit\"}\nstarts = true\n", `:3:1: sharing.people[1].claim: claims are those of an issuer's JWTs`},
		"claim of no tenant":         {issuers + "tenant_claim = \"org\"\n[[sharing.people]]\nstarts = true\n[sharing.people.claim]\ngroups = \"sekrit\"\n", `:8:2: sharing.people[1].claim: everybody whom the issuer knows has a tenant`},
		"an empty claim":             {issuers + "[[sharing.people]]\nstarts = true\nclaim.groups = \"\"\n", `:7:1: sharing.people[1].claim: a claim has`},
		"a class that nothing has":   {"[sharing.tools]\nclock = [\"sekrit\"]\n" + rule + "clears = [\"unclassified\", \"sekret\"]\n", `:7:1: sharing.people[1].clears: one of these is no class`},
		"a tool that is not there":   {rule + "tools = [\"clock\", \"sekrit\"]\n", `:5:1: sharing.people[1].tools: one of these fits no tool`},
		"one tool of an MCP server":  {rule + "tools = [\"files_sekrit\"]\n", `:5:1: sharing.people[1].tools: the tools of an MCP server are granted together; write "files_*"`},
		"some tools of it":           {rule + "tools = [\"files_r*\"]\n", `:5:1: sharing.people[1].tools: the tools of an MCP server are granted together`},
		"not to manage":              {"[[sharing.people]]\neverybody = true\nmanages = false\n", `:4:1: sharing.people[1].manages: rules add up`},
		"not to start, in one table": {"sharing.people = [{everybody = true, starts = false}]\n", `:2:1: sharing.people[1].starts: rules add up`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sharingFile(t, test.file)
			if err == nil || !strings.Contains(err.Error(), "parley.toml"+test.want) || strings.Contains(err.Error(), "sekrit") || strings.Contains(err.Error(), "\n") {
				t.Errorf("ReadSettings = %v; want %s, and no value", err, test.want)
			}
		})
	}
	_, err := New(t.Context(), Config{Data: t.TempDir(), Settings: Settings{Sharing: Sharing{Tools: map[string][]string{"x": nil}}}})
	if err == nil || !strings.HasPrefix(err.Error(), `configuration: sharing.tools.x: it fits no tool`) {
		t.Errorf("New = %v", err)
	}
}

// ruled are rules of every kind.
const ruled = `
[sharing.tools]
"files_*" = ["internal"]
"files_pay*" = ["pay"]
"*" = ["noted"]

[[sharing.people]]
everybody = true
clears = ["noted"]

[[sharing.people]]
tenant = "acme"
actors = ["ann", "cal"]
clears = ["internal"]
tools = ["clock", "files_*"]
manages = true

[[sharing.people]]
actor = "op"
clears = ["internal", "pay"]
tools = ["cl*"]
starts = true
`

func person(tenant, actor, behalf string) identity.Identity {
	who := identity.Identity{Actor: actor}
	if tenant != "" {
		who.Tenant = identity.Some(tenant)
	}
	if behalf != "" {
		who.OnBehalfOf = identity.Some(behalf)
	}
	return who
}

// T91, C-33.4, C-33.10, C-36.1, C-36.2, C-37.1: rules add up for exactly those whom
// they name: no namesake of another tenant or of none, and nobody who acts for
// another; of a tool's classes all have to be cleared.
func TestRights(t *testing.T) {
	settings, err := sharingFile(t, ruled)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRights(settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		who                          identity.Identity
		tool                         string
		sees, calls, manages, starts bool
	}{
		{person("acme", "ann", ""), "files_read", true, true, true, false},
		{person("acme", "ann", ""), "files_pay_all", false, true, true, false},
		{person("acme", "ann", ""), "clock", true, true, true, false},
		{person("acme", "cal", ""), "files_read", true, true, true, false},
		{person("acme", "bob", ""), "clock", true, false, false, false},
		{person("acme", "bob", ""), "files_read", false, false, false, false},
		{person("evil", "ann", ""), "files_read", false, false, false, false},
		{person("", "ann", ""), "files_read", false, false, false, false},
		{person("acme", "ann", "eve"), "files_read", false, false, false, false},
		{person("", "op", ""), "files_pay_all", true, false, false, true},
		{person("", "op", ""), "clock", true, true, false, true},
		{person("acme", "op", ""), "files_read", false, false, false, false},
	} {
		classes, known := r.classOf(test.tool)
		effect := kernel.EffectID("tool." + strings.Split(test.tool, "_")[0])
		sees, err := r.cleared(t.Context(), test.who, classes)
		manages, err2 := r.manages(t.Context(), test.who, "")
		starts, err3 := r.mayStart(t.Context(), test.who)
		calls := r.granted(&test.who, effect)
		if !known || sees != test.sees || calls != test.calls || manages != test.manages || starts != test.starts || err != nil || err2 != nil || err3 != nil {
			t.Errorf("%s: %+v: %v sees %t, calls %t, manages %t, starts %t", test.who.Key(), test, classes, sees, calls, manages, starts)
		}
	}
}

// C-34.6, C-36.2, C-4.17: without a word of configuration a tool is unclassified,
// which nobody is cleared for, but the clock; everybody starts and calls, nobody
// manages; and the service runs turns and the summarizer, which people cannot.
func TestRightsWithoutRules(t *testing.T) {
	r, err := newRights(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	ann, ctx := person("acme", "ann", ""), t.Context()
	if classes, known := r.classOf("clock"); !known || len(classes) > 0 {
		t.Errorf("classOf(clock) = %v, %t", classes, known)
	}
	if _, known := r.classOf("files_read"); known {
		t.Error("a tool that no line names is known")
	}
	if sees, _ := r.cleared(ctx, ann, []string{conversation.Unclassified}); sees {
		t.Error("somebody without a rule is cleared")
	}
	if manages, _ := r.manages(ctx, ann, ""); manages {
		t.Error("somebody without a rule manages")
	}
	if starts, _ := r.mayStart(ctx, ann); !starts {
		t.Error("somebody may not start where there is no rule")
	}
	for effect, want := range map[kernel.EffectID][2]bool{ // the service's, a person's
		conversation.TurnEffect: {true, false}, "summarize": {true, true}, "model": {false, true}, "tool.clock": {false, true}, "tool.x": {false, true},
	} {
		if got := [2]bool{r.granted(&service, effect), r.granted(&ann, effect)}; got != want {
			t.Errorf("%s is granted %v; want %v", effect, got, want)
		}
		if r.granted(nil, effect) {
			t.Errorf("%s is granted to nobody", effect)
		}
	}
}

// C-31.1, C-32.12: a rule of a claim holds for whom the newest JWT says so, as long
// as that holds; an older one that is shown again changes nothing, and of whom nobody
// has shown one, nothing is known.
func TestRightsByClaims(t *testing.T) {
	settings := Settings{OIDC: &issuer.Config{}, Sharing: Sharing{
		People: []SharingRule{{Claim: map[string]string{"groups": "oncall", "level": "2"}, Clears: []string{conversation.Unclassified}}},
	}}
	r, err := newRights(settings)
	if err != nil {
		t.Fatal(err)
	}
	ann, now := person("", "ann", ""), time.Now()
	both := []claim{{"groups", "oncall"}, {"level", "2"}}
	sees := func() bool {
		yes, _ := r.cleared(t.Context(), ann, []string{conversation.Unclassified})
		return yes
	}
	for _, step := range []struct {
		what string
		said said
		want bool
	}{
		{"one of two", said{both[:1], now, now.Add(time.Hour)}, false},
		{"both", said{both, now.Add(time.Second), now.Add(time.Hour)}, true},
		{"none, and older", said{nil, now, now.Add(time.Hour)}, true},
		{"none, and newer", said{nil, now.Add(2 * time.Second), now.Add(time.Hour)}, false},
		{"both, and older", said{both, now, now.Add(time.Hour)}, false},
		{"both, and over", said{both, now.Add(time.Minute), now}, false},
		{"both, of which the newer is over", said{both, now, now.Add(time.Hour)}, true},
	} {
		r.claims.learn(ann, step.said)
		if got := sees(); got != step.want {
			t.Errorf("%s: %t; want %t", step.what, got, step.want)
		}
	}
	if ann = person("acme", "ann", ""); sees() {
		t.Error("a namesake has it")
	}
	for i := range maxClaimants + 1 {
		r.claims.learn(person("t", strings.Repeat("x", i%200)+string(rune('a'+i%26))+time.Duration(i).String(), ""), said{both, now, now.Add(time.Hour)})
	}
	if n := len(r.claims.known); n != maxClaimants {
		t.Errorf("%d people are remembered; want %d", n, maxClaimants)
	}
}
