package agent

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"time"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// Clock returns the tool "clock", which tells the time. Looking again does no
// harm, so it is repeatable.
func Clock() Tool {
	return Tool{
		Name:        "clock",
		Description: taint.Plain("Tells the current date, weekday and time."),
		Schema: jsontext.Value(`{"type":"object","properties":{"zone":{"type":"string",` +
			`"description":"IANA time zone, such as Europe/Oslo; UTC if absent"}},"additionalProperties":false}`),
		Mode: kernel.Repeatable,
		Run: func(_ context.Context, args jsontext.Value) (Result, error) {
			var in struct {
				Zone string `json:"zone"`
			}
			if json.Unmarshal(args, &in) != nil || len(in.Zone) > maxWord {
				return Result{Text: `The arguments are not {"zone": "<IANA time zone>"}.`, Failed: true}, nil
			}
			zone, err := time.LoadLocation(in.Zone)
			if err != nil || in.Zone == "Local" {
				return Result{Text: "There is no such time zone here.", Failed: true}, nil
			}
			return Result{Text: time.Now().In(zone).Format("Monday, 2 January 2006, 15:04:05 -07:00 (MST)")}, nil
		},
	}
}
