package proxy_test

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/parley-run/parley/body/browser/proxy"
)

// A browser behind the proxy does not reach the machine that it runs on.
func Example() {
	p, err := proxy.Start(proxy.Config{
		Allow:  []string{"wiki.internal"},
		Refuse: []string{"chat.example.org", "0.0.0.0:8080"}, // the server's own
		Refused: func(target, reason string) {
			fmt.Println("refused:", target, reason)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	browser := http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.Addr()}),
	}}
	answer, err := browser.Get("http://169.254.169.254/latest/meta-data/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status, answer.Header.Get(proxy.Header))
	// Output:
	// refused: 169.254.169.254:80 address
	// 403 Forbidden address
}
