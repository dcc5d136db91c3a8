package issuer

import (
	"cmp"
	"errors"
	"net/netip"
	"net/url"
)

// Config says whose JWTs are taken, and for whom they stand. Issuer and Audience
// are required.
type Config struct {
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

// Check refuses what cannot work, and says which key of a configuration file is
// wrong. The error repeats no value.
func (c Config) Check() (key string, err error) {
	u, err := url.Parse(c.Issuer)
	switch {
	case c.Issuer == "":
		return "issuer", errors.New("it is not set")
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "issuer", errors.New("it is no address of an issuer, such as https://login.example.org")
	case u.Scheme != "https" && !isLocalHTTP(u):
		return "issuer", errors.New("an issuer is met by https, or by http on this machine")
	case c.Audience == "":
		return "audience", errors.New("it is not set; without it JWTs for other services would be taken too")
	case c.TenantClaim != "" && c.TenantClaim == cmp.Or(c.ActorClaim, "sub"):
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

// local is whether an address may be asked without TLS: where the issuer itself is
// met so, on this machine.
func (c Config) local(address *url.URL) bool {
	u, err := url.Parse(c.Issuer)
	return err == nil && isLocalHTTP(u) && isLocalHTTP(address)
}
