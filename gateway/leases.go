package gateway

import (
	"net/http"

	"github.com/parley-run/parley/lease"
)

// leases is GET /v1/leases: how each part of the agent's body stands. It changes
// nothing, and everybody whom the gateway knows may look (L-2.5, L-28.2).
func (g *Gateway) leases(x *exchange) error {
	resources := []lease.Status{}
	if g.config.Leases != nil {
		resources = append(resources, g.config.Leases()...)
	}
	return x.answer(http.StatusOK, struct {
		Resources []lease.Status `json:"resources"`
	}{resources})
}
