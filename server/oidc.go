package server

import (
	"cmp"
	"errors"
	"net/netip"
	"net/url"
)

// OIDC says whose JWTs are taken as bearer tokens, and for whom they stand.
type OIDC struct {
	// Issuer is the URL under which the issuer is found and signs: https, or http
	// on this machine.
	Issuer string `toml:"issuer"`
	// Audience has to be among those that a JWT is made for.
	Audience string `toml:"audience"`
	// ActorClaim names the claim that is the actor, sub if empty.
	ActorClaim string `toml:"actor_claim"`
	// TenantClaim names the claim that is the tenant. Empty, nobody has one; else
	// a JWT without it is refused.
	TenantClaim string `toml:"tenant_claim"`
}

// check refuses what cannot work, and says which key is wrong. It repeats no
// value.
func (o OIDC) check() (key string, err error) {
	u, err := url.Parse(o.Issuer)
	switch {
	case o.Issuer == "":
		return "issuer", errors.New("it is not set")
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "issuer", errors.New("it is no address of an issuer, such as https://login.example.org")
	case u.Scheme != "https" && !isLocalHTTP(u):
		return "issuer", errors.New("an issuer is met by https, or by http on this machine")
	case o.Audience == "":
		return "audience", errors.New("it is not set; without it JWTs for other services would be taken too")
	case o.TenantClaim != "" && o.TenantClaim == cmp.Or(o.ActorClaim, "sub"):
		return "tenant_claim", errors.New("it is the claim of the actor")
	}
	return "", nil
}

// isLocalHTTP reports whether the address is met without TLS, and on this machine.
func isLocalHTTP(u *url.URL) bool {
	if u.Scheme != "http" {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.Unmap().IsLoopback()
}
