package identity_test

import (
	"fmt"

	"github.com/parley-run/parley/identity"
)

// An absent tenant and an empty one are different people.
func ExampleIdentity() {
	ann := identity.Identity{Actor: "ann"}
	other := identity.Identity{Tenant: identity.Some(""), Actor: "ann"}
	fmt.Println(ann == other, ann.Key(), other.Key())
	// Output: false [null,"ann",null] ["","ann",null]
}

// A credential shows itself only where it is asked to.
func ExampleSecret() {
	p := identity.Principal{Credential: identity.NewSecret("parley_s3cret")}
	fmt.Println(p.Credential, len(p.Credential.Reveal()))
	// Output: [secret] 13
}
