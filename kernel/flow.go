package kernel

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Flow is a named, versioned, deterministic function. It runs again from the
// top of its generation on each cold wake, and must then ask for the same
// facts: inside it there is no clock, no chance, no I/O and no goroutine, and
// no state but its input and what its Context gave it.
type Flow struct {
	Name    string // of all its versions
	Version string // recorded in event 0; replays of old generations need it registered
	Needs   []Feature

	// Run is the body. It returns the execution's output, an error that ends
	// the execution as failed (its code is recorded, its text is not), or
	// [ContinueAsNew].
	Run func(c *Context, input jsontext.Value) (output any, err error)
}

// Feature is a part of the kernel that a runtime switches on (C-4.15).
type Feature string

const (
	Inbox         Feature = "inbox"         // Send and Receive
	Continuations Feature = "continueAsNew" // ContinueAsNew
)

// ContinueAsNew, returned as a flow's error, ends the generation and starts
// the next with carry as its input. Principal, inbox cursors and dedupe window
// go along (C-6.12); the flow's newest registered version takes over. A carry
// over [MaxCarryBytes] makes the execution stuck and writes nothing (C-6.11).
func ContinueAsNew(carry any) error { return &continueAsNew{carry: carry} }

type continueAsNew struct{ carry any }

func (*continueAsNew) Error() string { return "continue as new" }

// flows holds the registered versions of each flow, oldest first.
type flows map[string][]Flow

// newFlows checks the flows against the features that are on.
func newFlows(list []Flow, features []Feature) (flows, error) {
	all := flows{}
	for _, flow := range list {
		if flow.Name == "" || flow.Version == "" || flow.Run == nil {
			return nil, errors.New("a flow needs a name, a version and a body")
		}
		if strings.Contains(flow.Name, "/") { // it would end the name in the directory, see ownerRow
			return nil, fmt.Errorf("the name of flow %q contains a slash", flow.Name)
		}
		for _, need := range flow.Needs {
			if !slices.Contains(features, need) {
				return nil, fmt.Errorf("flow %q needs feature %q, which this runtime has not switched on", flow.Name, need)
			}
		}
		if _, ok := all.version(flow.Name, flow.Version); ok {
			return nil, fmt.Errorf("flow %q version %q is registered twice", flow.Name, flow.Version)
		}
		all[flow.Name] = append(all[flow.Name], flow)
	}
	return all, nil
}

// newest returns the version of the flow that was registered last.
func (f flows) newest(name string) (Flow, bool) {
	versions := f[name]
	if len(versions) == 0 {
		return Flow{}, false
	}
	return versions[len(versions)-1], true
}

// version returns one version of the flow.
func (f flows) version(name, version string) (Flow, bool) {
	for _, flow := range f[name] {
		if flow.Version == version {
			return flow, true
		}
	}
	return Flow{}, false
}
