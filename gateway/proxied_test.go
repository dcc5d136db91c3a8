package gateway

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/parley-run/parley/conversation"
)

// SSE-44, SSE-49, check 19: behind a reverse proxy, over HTTP/1.1 and over HTTP/2, a
// stream opens with its status before anything happens, nothing is compressed or
// held back, and the client's going away is passed on.
func TestSSE44Proxied(t *testing.T) {
	for _, two := range []bool{false, true} {
		w := newWorld(t)
		var protocols http.Protocols
		protocols.SetHTTP1(!two)
		protocols.SetUnencryptedHTTP2(two)
		left := make(chan int, 1)
		backend := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.handler.ServeHTTP(rw, r)
			left <- r.ProtoMajor
		}))
		backend.Config.Protocols = &protocols
		backend.Start()
		t.Cleanup(backend.Close)
		address, err := url.Parse(backend.URL)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{Protocols: &protocols, DisableCompression: true}
		t.Cleanup(transport.CloseIdleConnections)
		front := httptest.NewServer(&httputil.ReverseProxy{
			Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) },
		})
		t.Cleanup(front.Close)

		id := w.start()
		r := request("GET", front.URL+"/v1/conversations/"+id+"/events", "ann@acme", "")
		r.Header.Set("Accept-Encoding", "gzip, br")
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if h := response.Header; response.StatusCode != 200 || h.Get("Content-Encoding") != "" || h.Get("Content-Type") != "text/event-stream" {
			t.Errorf("HTTP/2 %t: %d %v", two, response.StatusCode, h)
		}
		events := newReader(response.Body)
		events.expect(t, eventStatus) // and nothing has happened
		if _, err := w.client.SendTurn(t.Context(), ann, id, conversation.Message{Text: "one"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			events.message(t)
		}
		response.Body.Close()
		if proto := <-left; (proto == 2) != two || w.open() != 0 {
			t.Errorf("HTTP/2 %t: asked over HTTP/%d, %d streams are open after the client has left", two, proto, w.open())
		}
	}
}
