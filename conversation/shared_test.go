package conversation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A class that a tool brings goes from answer to answer by what each asker was
// given, and each viewer is shown what they are cleared for (C-36, C-37).
func TestSharedChain(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.clear(bob, "secret")
		p.ask(ann, "one")
		p.ask(ann, "two [use secret]")
		p.ask(bob, "three")
		p.ask(cal, "four")
		first := []string{
			"1 user accepted ann one", "1 assistant complete ann re: one", "2 user accepted ann two [use secret]",
		}
		for _, want := range []struct {
			who  string
			sees []string
		}{
			{"ann", []string{
				"2 assistant complete ann re: two [use secret] secret-result [secret]",
				"3 user restricted bob", "3 assistant restricted bob",
				"4 user accepted cal four", "4 assistant complete cal re: four",
			}},
			{"bob", []string{
				"2 assistant complete ann re: two [use secret] secret-result [secret]",
				"3 user accepted bob three [secret]", "3 assistant complete bob re: three [secret]",
				"4 user accepted cal four", "4 assistant complete cal re: four",
			}},
			{"cal", []string{
				"2 assistant restricted ann",
				"3 user restricted bob", "3 assistant restricted bob",
				"4 user accepted cal four", "4 assistant complete cal re: four",
			}},
		} {
			if diff := cmp.Diff(append(first, want.sees...), p.sees(person("acme", want.who))); diff != "" {
				t.Errorf("%s sees:\n%s", want.who, diff)
			}
		}
		if len(p.failed) > 0 {
			t.Errorf("turns failed: %v", p.failed)
		}
	})
}
