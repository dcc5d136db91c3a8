package gateway_test

import (
	"errors"
	"log"
	"net/http"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/identity"
)

// A gateway in front of a client, for callers that a front end has named in a
// header.
func ExampleNew() {
	var client *conversation.Client // from conversation.NewClient
	handler, err := gateway.New(gateway.Config{
		Client: client,
		Authenticate: func(r *http.Request) (identity.Principal, error) {
			user := r.Header.Get("X-Forwarded-User")
			if user == "" {
				return identity.Principal{}, errors.New("no user")
			}
			return identity.Principal{Identity: identity.Identity{Actor: user}}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler}
	log.Fatal(server.ListenAndServe())
}
