package client

import (
	"context"

	"github.com/parley-run/parley/lease"
)

// Leases says how each part of the agent's body stands, in the order of their keys
// (L-28.8).
func (c *Client) Leases(ctx context.Context) ([]lease.Status, error) {
	var answer struct {
		Resources []lease.Status `json:"resources"`
	}
	err := c.get(ctx, "leases", nil, &answer)
	return answer.Resources, err
}
