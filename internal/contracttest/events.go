package contracttest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pb33f/jsonschema/v6"
)

// frame is an event as this server writes one (C-30.6): lines that end with LF,
// fields in one order, one line of data.
var frame = regexp.MustCompile(`^event: ([a-z]+)(?:\nid: (\S+))?(?:\nretry: ([1-9][0-9]*))?\ndata: (\S.*)$`)

// events holds a stream against the events that the document knows: their data,
// who has an id, who comes first and who last. What the end of the stream cuts
// off is nothing.
func (c *Contract) events(known place, stream []byte) error {
	blocks := strings.Split(string(stream), "\n\n")
	first, over := true, false
	for _, block := range blocks[:len(blocks)-1] {
		if block == ":" {
			continue
		}
		m := frame.FindStringSubmatch(block)
		if m == nil {
			return fmt.Errorf("a block of the stream is no event: %.200q", block)
		}
		event := c.under(known, m[1])
		switch {
		case !event.ok():
			return fmt.Errorf("the event %q is not in the document", m[1])
		case over:
			return fmt.Errorf("the event %q comes behind the last", m[1])
		case first && c.under(event, "first").node != true:
			return fmt.Errorf("the event %q is the first", m[1])
		}
		if err := c.event(event, m[2], m[4]); err != nil {
			return fmt.Errorf("the event %q: %w", m[1], err)
		}
		first, over = false, c.under(event, "last").node == true
	}
	return nil
}

// event holds one event against the document. The id of one that has an id is
// the cursor of its entry (C-30.3).
func (c *Contract) event(event place, id, data string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
	if err != nil {
		return fmt.Errorf("data that are no JSON: %w", err)
	}
	if err := c.fits(c.under(event, "data"), value); err != nil {
		return err
	}
	c.see("event " + event.pointer)
	if c.under(event, "id").node != true {
		if id != "" {
			return errors.New("it has an id")
		}
		return nil
	}
	if entry, _ := value.(map[string]any); entry["cursor"] != id {
		return fmt.Errorf("its id %q is not the cursor of its entry", id)
	}
	return nil
}
