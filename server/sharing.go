package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/lease"
	"github.com/parley-run/parley/server/datadir"
)

// Sharing says who may see and do what, see docs/sharing.md.
type Sharing struct {
	// Tools are the classes of tools, by the name that the model sees; '*' at the
	// end of a name stands for any rest. The classes of all names that fit a tool
	// add up. A tool that none fits is unclassified, but the clock, which then has
	// no class (C-36.2).
	Tools map[string][]string `toml:"tools"`

	// People are rules of what people may. All that fit somebody add up, and who
	// fits none may nothing that a rule is needed for.
	People []SharingRule `toml:"people"`
}

// SharingRule is for those who fit all that it names. Where it does not name a
// tenant, or for whom they act, it is for those who have none and act for nobody.
type SharingRule struct {
	Tenant     *string           `toml:"tenant"`
	Actor      string            `toml:"actor"`
	Actors     []string          `toml:"actors"`       // one of them
	OnBehalfOf *string           `toml:"on_behalf_of"` // for whom they act
	Claim      map[string]string `toml:"claim"`        // of the issuer's JWT: a text, or a list that has it
	Everybody  bool              `toml:"everybody"`    // in place of all of these: everybody whom the server knows

	Clears []string `toml:"clears"` // classes that they may see (C-37.1)
	// Tools are what their turns may call. Where no rule has it, everybody's may
	// call every tool.
	Tools   *[]string `toml:"tools"`
	Manages *bool     `toml:"manages"` // conversations that they take part in (C-33.4)
	// Starts lets them start shared conversations. Where no rule has it, everybody
	// may (C-33.10).
	Starts *bool `toml:"starts"`
	// Uses are the parts of the agent's body that their turns may use. Where no rule
	// has it, the actor me may use all of them, and nobody else any.
	Uses *[]lease.Resource `toml:"uses"`
}

// sharingError says what is wrong with a setting, and where: the names that lead to
// it. It repeats no value.
type sharingError struct {
	path []string
	why  string
}

// Error names the setting as the file would.
func (e *sharingError) Error() string {
	name := e.path[0]
	for _, part := range e.path[1:] {
		if n, err := strconv.Atoi(part); err == nil && name == "sharing.people" {
			name += fmt.Sprintf("[%d]", n+1)
			continue
		}
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
			part = strconv.Quote(part)
		}
		name += "." + part
	}
	return name + ": " + e.why
}

// maxSharingRules bounds what is looked through for each request.
const maxSharingRules = 1000

// check refuses what cannot mean what it says. tools are the names of the agent's
// own tools, sets those of its sets.
func (s Sharing) check(own []string, sets []string, oidc bool, tenants bool) error {
	classes := map[string]bool{conversation.Unclassified: true}
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		fits, _ := toolPattern(name).of(own, sets)
		why := ""
		switch {
		case !toolPattern(name).valid():
			why = "it is no name of tools: letters, digits, '_' and '-', with or without '*' at the end"
		case !fits:
			why = "it fits no tool of the agent's; those of an MCP server begin with its name and '_'"
		}
		for _, class := range s.Tools[name] {
			if !isClass(class) {
				why = "a class is a text of 1 to 128 bytes, without '*' and control characters"
			}
			classes[class] = true
		}
		if why != "" {
			return &sharingError{[]string{"sharing", "tools", name}, why}
		}
	}
	if len(s.People) > maxSharingRules {
		return &sharingError{[]string{"sharing", "people"}, fmt.Sprintf("there are more than %d rules", maxSharingRules)}
	}
	for i, rule := range s.People {
		key, err := rule.checkWho(oidc, tenants)
		if err == nil {
			key, err = rule.checkWhat(classes, own, sets)
		}
		if err != nil {
			path := []string{"sharing", "people", strconv.Itoa(i)}
			if key != "" {
				path = append(path, key)
			}
			return &sharingError{path, err.Error()}
		}
	}
	return nil
}

// checkWho refuses a rule that would be for nobody, or for more than it seems.
func (r SharingRule) checkWho(oidc, tenants bool) (key string, err error) {
	people := r.Tenant != nil || r.Actor != "" || len(r.Actors) > 0 || r.OnBehalfOf != nil || len(r.Claim) > 0
	switch {
	case r.Everybody && people:
		return "everybody", errors.New("it stands for itself; a rule for some names no everybody")
	case !r.Everybody && !people:
		return "", errors.New("it names nobody; give it a tenant, an actor, actors, a claim, or everybody = true")
	case r.Actor != "" && len(r.Actors) > 0:
		return "actors", errors.New("it goes in place of actor, not beside it")
	case len(r.Claim) > 0 && !oidc:
		return "claim", errors.New("claims are those of an issuer's JWTs, and there is no [oidc]")
	case len(r.Claim) > 0 && tenants && r.Tenant == nil:
		return "claim", errors.New("everybody whom the issuer knows has a tenant (tenant_claim), so the rule has to name theirs")
	}
	for claim, value := range r.Claim {
		if claim == "" || value == "" || len(value) > identity.MaxFieldBytes {
			return "claim", errors.New("a claim has a name, and a text of 1 to 256 bytes")
		}
	}
	return r.checkNames()
}

// checkNames refuses names that nobody whom the server knows can have.
func (r SharingRule) checkNames() (key string, err error) {
	const anybody = "anybody"
	key, actors := "actors", r.Actors
	if len(actors) == 0 {
		key, actors = "actor", []string{cmp.Or(r.Actor, anybody)}
	}
	for _, actor := range actors {
		switch who := (identity.Identity{Actor: actor}); {
		case who.Validate() != nil:
			return key, errors.New("whom a rule names is a text of 1 to 256 bytes")
		case strings.HasPrefix(actor, datadir.ServicePrefix): // no credential can be theirs (C-34.2)
			return key, fmt.Errorf("actors that begin with %q are the server's own, so the rule is for nobody", datadir.ServicePrefix)
		}
	}
	switch {
	case identity.Identity{Actor: anybody, Tenant: fieldOf(r.Tenant)}.Validate() != nil:
		return "tenant", errors.New("a tenant is a text of up to 256 bytes")
	case identity.Identity{Actor: anybody, OnBehalfOf: fieldOf(r.OnBehalfOf)}.Validate() != nil:
		return "on_behalf_of", errors.New("for whom somebody acts is a text of up to 256 bytes")
	}
	return "", nil
}

// checkWhat refuses a rule that says nothing, or what nothing fits.
func (r SharingRule) checkWhat(classes map[string]bool, own, sets []string) (key string, err error) {
	if len(r.Clears) == 0 && r.Tools == nil && r.Manages == nil && r.Starts == nil && r.Uses == nil {
		return "", errors.New("it lets people do nothing; give it clears, tools, manages, starts or uses")
	}
	if r.Uses != nil && slices.ContainsFunc(*r.Uses, func(part lease.Resource) bool { return part != lease.Browser }) {
		return "uses", fmt.Errorf("one of these is no part of the agent's body; it has %q", lease.Browser)
	}
	if r.Manages != nil && !*r.Manages {
		return "manages", errors.New("rules add up and take nothing away: true, or no such line")
	}
	if r.Starts != nil && !*r.Starts {
		return "starts", errors.New("rules add up and take nothing away: true, or no such line")
	}
	for _, class := range r.Clears {
		if !classes[class] {
			return "clears", errors.New(`one of these is no class: none of [sharing.tools] has it, and it is not "unclassified"`)
		}
	}
	if r.Tools == nil {
		return "", nil
	}
	for _, name := range *r.Tools {
		fits, part := toolPattern(name).of(own, sets)
		switch {
		case !toolPattern(name).valid() || !fits:
			return "tools", errors.New("one of these fits no tool of the agent's; those of an MCP server begin with its name and '_'")
		case part != "":
			return "tools", fmt.Errorf("the tools of an MCP server are granted together; write %q", part+"_*")
		}
	}
	return "", nil
}

func fieldOf(text *string) identity.Field {
	if text == nil {
		return identity.Field{}
	}
	return identity.Some(*text)
}

// isClass reports whether a text can be the name of a class.
func isClass(text string) bool {
	return text != "" && len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '*' || r == '\ufffd' })
}

// toolPattern is a name of tools, with '*' at its end for any rest.
type toolPattern string

// split returns the name without the star, and whether there was one.
func (p toolPattern) split() (name string, open bool) { return strings.CutSuffix(string(p), "*") }

func (p toolPattern) valid() bool {
	name, open := p.split()
	return (open || name != "") && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// fits reports whether a tool is meant.
func (p toolPattern) fits(tool string) bool {
	name, open := p.split()
	return tool == name || open && strings.HasPrefix(tool, name)
}

// of reports whether the agent can have a tool that is meant, and which set it is
// of whose tools only some are.
func (p toolPattern) of(own, sets []string) (fits bool, part string) {
	fits = slices.ContainsFunc(own, p.fits)
	name, open := p.split()
	for _, set := range sets {
		switch begin := set + "_"; {
		case open && strings.HasPrefix(begin, name):
			fits = true
		case strings.HasPrefix(name, begin) && name != begin:
			fits, part = true, set
		}
	}
	return fits, part
}

// all reports whether every tool of a set is meant.
func (p toolPattern) all(set string) bool {
	name, open := p.split()
	return open && strings.HasPrefix(set+"_", name)
}
