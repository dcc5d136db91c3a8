package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-run/parley/tool/mcp"
)

// The tools of a server that is met by HTTP. An agent would be given it as one of
// its Toolsets.
func Example() {
	peer := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	type place struct {
		City string `json:"city"`
	}
	sdk.AddTool(peer, &sdk.Tool{Name: "today", Description: "Tells the weather of a city."},
		func(_ context.Context, _ *sdk.CallToolRequest, at place) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "rain in " + at.City}}}, nil, nil
		})
	far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return peer }, nil))
	defer far.Close()

	server, err := mcp.New(mcp.Config{Name: "weather", URL: far.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	server.Start()
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Await(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for _, offer := range server.Offers() {
		fmt.Println(server.Name(), offer.Name)
	}
	result, err := server.Call(ctx, "today", []byte(`{"city": "Oslo"}`))
	fmt.Println(result.Text, result.Origin, err)
	// Output:
	// weather today
	// rain in Oslo mcp:weather/today <nil>
}
