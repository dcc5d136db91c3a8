package conversation

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

var (
	bob     = person("acme", "bob")
	cal     = person("acme", "cal")
	service = identity.Identity{Actor: "parley:service"}
)

// party is a process in which conversations are shared, on a store that outlives
// it. Its model does what it is told: "[use NAME]" calls a tool, "[slowly]" takes
// ten seconds, and the answer repeats the question and what the tools returned.
type party struct {
	t        *testing.T
	store    *journaltest.Store
	model    *requests
	config   Config
	shared   *Shared
	other    []kernel.Effect
	hot      int
	reserved func(*kernel.Config)

	mu      sync.Mutex
	cleared map[string][]string // by actor: the classes that they may see
	asked   int                 // times that Cleared was asked
	ran     map[string]int      // runs of each tool
	failed  []error             // as OnError was told

	rt     *kernel.Runtime
	client *Client
	flow   *Flow
}

// parties runs a test hot, cold, and both with a rotation at every envelope.
func parties(t *testing.T, play func(t *testing.T, p *party)) {
	t.Helper()
	for _, variant := range []struct {
		name        string
		hot, rotate int
	}{{"hot", 0, 0}, {"cold", -1, 0}, {"hot, rotating", 0, 1}, {"cold, rotating", -1, 1}} {
		t.Run(variant.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParty(t)
				p.hot, p.config.Settings.RotateEveryTurns = variant.hot, variant.rotate
				play(t, p)
			})
		})
	}
}

func newParty(t *testing.T) *party {
	t.Helper()
	p := &party{
		t: t, store: journaltest.Wrap(memory.New()), model: &requests{t: t, inner: obliging{}},
		cleared: map[string][]string{}, ran: map[string]int{},
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	p.shared = &Shared{
		Service: service, Participants: LogParticipants(p.store),
		Cleared: func(_ context.Context, viewer identity.Identity, classes []string) (bool, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.asked++
			for _, class := range classes {
				if !slices.Contains(p.cleared[viewer.Actor], class) {
					return false, nil
				}
			}
			return true, nil
		},
		ClassOf: func(tool string) ([]string, bool) {
			switch tool {
			case "secret":
				return []string{"secret"}, true
			case "top":
				return []string{"top"}, true
			case "open":
				return nil, true
			}
			return nil, false
		},
	}
	tool := func(name string) agent.Tool {
		return agent.Tool{
			Name: name, Description: taint.Plain("does " + name), Mode: kernel.Repeatable,
			Run: func(context.Context, jsontext.Value) (agent.Result, error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.ran[name]++
				return agent.Result{Text: fmt.Sprintf("%s-result", name)}, nil
			},
		}
	}
	p.config = Config{
		Keys: testKeys(t), Log: quiet, Hub: NewHub(HubConfig{}), BargeIn: InboxBargeIn(p.store),
		Agent: agent.Definition{
			System: taint.Plain("Be brief."), Model: p.model, Log: quiet,
			Tools: []agent.Tool{tool("secret"), tool("top"), tool("open"), tool("unknown")},
		},
		OnError: func(_ string, err error, _ Where) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failed = append(p.failed, err)
		},
	}
	t.Cleanup(p.stop)
	return p
}

// boot makes the process.
func (p *party) boot() {
	p.t.Helper()
	p.config.Shared = p.shared
	var err error
	if p.flow, err = NewFlow(p.config); err != nil {
		p.t.Fatal(err)
	}
	policy := ownerScoped(p.t)
	config := kernel.Config{
		Store: p.store, Flows: p.flow.Kernels(), Effects: append(p.flow.Effects(), p.other...), Hot: p.hot,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations}, Log: p.config.Log, Policy: policy,
		RequirePrincipal: true, Reserved: []string{ParticipantsPrefix},
	}
	if p.reserved != nil {
		p.reserved(&config)
	}
	if p.rt, err = kernel.New(config); err != nil {
		p.t.Fatal(err)
	}
	p.client, err = NewClient(ClientConfig{Runtime: p.rt, Keys: p.config.Keys, Policy: &policy, Hub: p.config.Hub, Shared: p.shared})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.rt.Recover(context.Background()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *party) stop() {
	if p.rt != nil {
		p.rt.Close()
	}
}

func (p *party) reboot() {
	p.t.Helper()
	p.stop()
	p.boot()
}

// open starts a conversation of ann's in which bob and cal take part.
func (p *party) open() string {
	p.t.Helper()
	if p.rt == nil {
		p.boot()
	}
	id, err := p.client.StartShared(p.t.Context(), ann, "room")
	if err != nil {
		p.t.Fatal(err)
	}
	p.add(bob, cal)
	return id
}

func (p *party) add(people ...*identity.Principal) {
	p.t.Helper()
	for _, who := range people {
		if err := p.client.AddParticipant(p.t.Context(), ann, "room", who.Identity); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *party) clear(who *identity.Principal, classes ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleared[who.Actor] = classes
}

// say sends a text, and returns at once.
func (p *party) say(who *identity.Principal, text string) {
	p.t.Helper()
	if _, err := p.client.SendTurn(context.Background(), who, "room", Message{Text: text}); err != nil {
		p.t.Fatalf("SendTurn of %s: %v", who.Actor, err)
	}
}

// ask sends a text and waits until all is quiet.
func (p *party) ask(who *identity.Principal, text string) {
	p.t.Helper()
	p.say(who, text)
	p.settle()
}

// settle lets ten minutes pass, in which every turn ends.
func (p *party) settle() {
	<-time.After(10 * time.Minute)
	synctest.Wait()
}

// read is all events of a stream.
func (p *party) read(stream string) []journal.Event {
	p.t.Helper()
	events, err := p.store.ReadRange(context.Background(), stream, 0, 1<<20, journal.Forward)
	if err != nil {
		p.t.Fatal(err)
	}
	return events
}

// sees is the transcript as somebody sees it, one line for each entry.
func (p *party) sees(who *identity.Principal) []string {
	p.t.Helper()
	page, err := p.client.History(context.Background(), who, "room", HistoryOptions{Limit: MaxPage})
	if err != nil {
		p.t.Fatalf("History of %s: %v", who.Actor, err)
	}
	var lines []string
	for _, r := range page.Entries {
		lines = append(lines, line(r))
	}
	return lines
}

func line(r Record) string {
	words := []string{fmt.Sprint(r.Turn), string(r.Role), string(r.Status)}
	if r.Asker != nil {
		words = append(words, r.Asker.Actor)
	}
	for _, word := range []string{string(r.Reason), strings.TrimSpace(r.Text)} {
		if word != "" {
			words = append(words, word)
		}
	}
	if len(r.Classes) > 0 {
		words = append(words, fmt.Sprint(r.Classes))
	}
	return strings.Join(words, " ")
}

// obliging is the party's model.
type obliging struct{}

var orders = regexp.MustCompile(`\[use (\w+)\]`)

func (obliging) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		question := last.Text
		for i := len(req.Messages) - 1; question == "" && i >= 0; i-- {
			if req.Messages[i].Role == model.User {
				question = req.Messages[i].Text
			}
		}
		question = unfenced(question)
		if wanted := orders.FindAllStringSubmatch(question, -1); wanted != nil && len(last.Results) == 0 {
			for i, want := range wanted {
				call := &model.Call{ID: fmt.Sprint("c", i), Name: want[1], Args: jsontext.Value(`{}`)}
				if !yield(model.Chunk{Call: call}, nil) {
					return
				}
			}
			yield(model.Chunk{Finish: &model.Finish{Reason: model.FinishCalls}}, nil)
			return
		}
		words := []string{"re: " + question}
		for _, result := range last.Results {
			words = append(words, unfenced(result.Text))
		}
		for _, word := range words {
			if !yield(model.Chunk{Text: word + " "}, nil) {
				return
			}
			if strings.Contains(question, "[slowly]") {
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
					yield(model.Chunk{}, ctx.Err())
					return
				}
			}
		}
		yield(model.Chunk{Finish: &model.Finish{Reason: model.FinishStop}}, nil)
	}
}

// unfenced is the last tainted text of a message, without its fence.
func unfenced(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "<<<") && i < len(lines)-2 {
			return strings.Join(lines[i+1:len(lines)-1], "\n")
		}
	}
	return text
}
