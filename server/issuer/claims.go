package issuer

import (
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

// clockSkew is how far the clocks of the issuer and of this machine may differ.
const clockSkew = time.Minute

// Why a JWT that the issuer has signed is refused. No error repeats a claim.
var (
	errClaims   = errors.New("its claims are no JSON object that can be read")
	errAudience = errors.New("it is made for another audience; see audience in [oidc]")
	errNoEnd    = errors.New("it has no end; set the issuer to give its tokens an exp")
	errTime     = errors.New("it is over, or not yet valid")
	errActor    = errors.New("its actor claim is no text of 1 to 256 bytes; see actor_claim in [oidc]")
	errTenant   = errors.New("its tenant claim is no text of 1 to 256 bytes; see tenant_claim in [oidc]")
	errReserved = errors.New("it stands for an actor that is the server's own")
	errOperator = errors.New("it stands for the server's operator, who has a token; see actor_claim and tenant_claim in [oidc]")
)

// Bearer is what a JWT says.
type Bearer struct {
	Identity identity.Identity // for whom it stands
	Until    time.Time         // it holds, with the skew of clocks
	Issued   time.Time         // zero where it does not say

	claims map[string]jsontext.Value
}

// Says reports whether a claim is a text, or a list with a text, that is value.
func (b Bearer) Says(claim, value string) bool {
	said := b.claims[claim]
	if said.Kind() != '[' {
		one, ok := text(said)
		return ok && one == value
	}
	var list []jsontext.Value
	return json.Unmarshal(said, &list) == nil && slices.ContainsFunc(list, func(entry jsontext.Value) bool {
		one, ok := text(entry)
		return ok && one == value
	})
}

// read reads the claims of a JWT whose signature, issuer and audience are checked.
func (i *Issuer) read(payload []byte, now time.Time) (Bearer, error) {
	b := Bearer{}
	if err := json.Unmarshal(payload, &b.claims); err != nil { // names that stand twice, and text that is not UTF-8, are errors too
		return Bearer{}, errClaims
	}
	var err error
	if b.Until, err = interval(b.claims, now); err != nil {
		return Bearer{}, err
	}
	b.Issued, _ = instant(b.claims["iat"])
	b.Identity, err = i.owner(b.claims)
	return b, err
}

// owner reads for whom the claims of a JWT stand.
func (i *Issuer) owner(claims map[string]jsontext.Value) (who identity.Identity, err error) {
	var ok bool
	if who.Actor, ok = text(claims[cmp.Or(i.config.ActorClaim, "sub")]); !ok {
		return identity.Identity{}, errActor
	}
	if i.config.TenantClaim != "" {
		tenant, ok := text(claims[i.config.TenantClaim])
		if !ok {
			return identity.Identity{}, errTenant
		}
		who.Tenant = identity.Some(tenant)
	}
	switch {
	case strings.HasPrefix(who.Actor, datadir.ServicePrefix):
		return identity.Identity{}, errReserved // C-34.2
	case who == i.operator: // who runs the server is no matter of the issuer's
		return identity.Identity{}, errOperator
	}
	return who, nil
}

// text reads a claim that is a text.
func text(value jsontext.Value) (string, bool) {
	var s string
	if value.Kind() != '"' || json.Unmarshal(value, &s) != nil {
		return "", false
	}
	return s, s != "" && len(s) <= identity.MaxFieldBytes
}

// interval returns until when the claims hold, errTime if that is not now, and
// errNoEnd where nothing says it: a JWT without an end is refused.
func interval(claims map[string]jsontext.Value, now time.Time) (until time.Time, err error) {
	until, ok := instant(claims["exp"])
	if !ok {
		return time.Time{}, errNoEnd
	}
	until = until.Add(clockSkew)
	if !now.Before(until) {
		return time.Time{}, errTime
	}
	if value, ok := claims["nbf"]; ok {
		from, ok := instant(value)
		if !ok || now.Add(clockSkew).Before(from) {
			return time.Time{}, errTime
		}
	}
	return until, nil
}

// maxInstant is the last second that a time can have as a text.
const maxInstant = 253402300799 - int64(clockSkew/time.Second)

// instant reads a time, which is a number of seconds.
func instant(value jsontext.Value) (time.Time, bool) {
	var seconds float64
	if value.Kind() != '0' || json.Unmarshal(value, &seconds) != nil || seconds < 0 || seconds > float64(maxInstant) {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
