package tooltest_test

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"testing"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
	"github.com/parley-run/parley/tool/tooltest"
)

func TestSet(t *testing.T) {
	schema, err := tool.NewSchema(jsontext.Value(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`))
	if err != nil {
		t.Fatal(err)
	}
	set := tooltest.NewSet("memory", kernel.Once)
	set.Put(tool.Offer{Name: "echo", Description: taint.Plain("Repeats."), Schema: schema},
		func(_ context.Context, args jsontext.Value) (tool.Result, error) {
			var in struct {
				Text string `json:"text"`
			}
			err := json.Unmarshal(args, &in)
			return tool.Result{Text: in.Text}, err
		})
	set.Put(tool.Offer{Name: "wait"}, func(ctx context.Context, _ jsontext.Value) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	tooltest.Run(t, set)
	set.Clear()
	if got := set.Offers(); len(got) != 0 {
		t.Errorf("Offers after Clear = %v", got)
	}
}
