package server

import (
	"net/http"
	"time"

	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/identity"
)

// metricsTime is how long a reader of the metrics may take to accept them.
const metricsTime = 30 * time.Second

// metricsFor serves the metrics to who may read them: whoever asks from this
// machine, where nothing stands in front, and the owner of the server by a
// token. They lie outside the rules of Host and Origin, as probes do (C-32.5).
func (d door) metricsFor(owner identity.Identity, authenticate func(*http.Request) (identity.Principal, error), metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, r, http.StatusMethodNotAllowed, "method not allowed")
			return
		case d.isNearby(r):
		default:
			if principal, err := authenticate(r); err != nil || principal.Identity != owner {
				refuse(w, r, http.StatusUnauthorized, "unauthorized")
				return
			}
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(metricsTime)) // a writer without deadlines is bounded by its server
		defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
		metrics.ServeHTTP(w, r)
	})
}

// isNearby reports whether a request is surely one of a program on this machine.
// It is not where a proxy may have passed it on: one that is trusted here, one
// that gives itself away, or one of which only the names tell that the server is
// met from elsewhere. Nor is it under a name that a page may have made point here.
func (d door) isNearby(r *http.Request) bool {
	behind := d.trustsLoopback() || len(d.edge.AllowedHosts) > 0 || arrivalOf(r).proxied
	return !behind && peerOf(r).IsLoopback() && gateway.IsLoopback(r.Host)
}
