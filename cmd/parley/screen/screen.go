// Package screen is the chat of parley on a whole terminal: the threads, the
// transcript with scrolling back, and a field to write in. Call [Run]. It promises
// that no text of a person or a model makes the terminal do anything (C-30.13), and
// that the terminal is left as it was found, also after a signal or a panic.
//
// The chat is a state machine without I/O: a key or news of the server go in, a view
// and wishes come out. A world carries the wishes out and sends the news.
package screen

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-run/parley/client"
)

// showCursor makes a terminal show its cursor (DECTCEM).
const showCursor = "\x1b[?25h"

// Config is what a chat stands on. All of it is required.
type Config struct {
	Server *client.Client
	ID     string      // of the conversation to begin with
	Away   <-chan bool // says when requests do not reach the server, and when they do again
	In     *os.File    // a terminal
	Out    *os.File    // a terminal
}

// Run shows the chat until the person leaves or ctx is done, of which it returns the
// cause. It returns the id of the conversation that was shown last.
func Run(ctx context.Context, config Config) (last string, err error) {
	state := newState(config.ID, time.Local)
	state.typed(typedBefore(config.In))
	return run(ctx, config, state)
}

// run is Run of a state.
func run(ctx context.Context, config Config, state *state) (last string, err error) {
	ctx, leave := context.WithCancel(ctx)
	world := &world{ctx: ctx, server: config.Server}
	defer world.working.Wait()
	defer leave()
	program := tea.NewProgram(&program{state: state, world: world},
		tea.WithInput(config.In), tea.WithOutput(config.Out), tea.WithoutSignalHandler())
	world.tell = program.Send
	world.crash = func() {
		program.Kill()
		_, _ = io.WriteString(config.Out, showCursor)
	}
	world.watch(config.Away)
	// To quit waits for who reads the keys, and takes the screen down whole; a context
	// of bubbletea's own would do neither.
	left := context.AfterFunc(ctx, program.Quit)
	defer left()
	_, err = program.Run()
	_, _ = io.WriteString(config.Out, showCursor) // which a screen that ends in the middle of a frame can leave hidden
	if ctx.Err() != nil {
		return state.id, context.Cause(ctx)
	}
	if errors.Is(err, tea.ErrProgramPanic) {
		err = errors.New("the chat has failed; its trace stands above")
	}
	return state.id, err
}

// program lets bubbletea run the state machine.
type program struct {
	state *state
	world *world
}

// Init asks for what is shown first.
func (p *program) Init() tea.Cmd { return p.carryOut(p.state.begin()) }

// Update takes in a key, or news.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	return p, p.carryOut(p.state.update(msg))
}

// View shows how things are.
func (p *program) View() tea.View { return p.state.view() }

// carryOut passes wishes on: what concerns the terminal to bubbletea, the rest to the
// world.
func (p *program) carryOut(wishes []wish) tea.Cmd {
	var commands []tea.Cmd
	for _, w := range wishes {
		switch w.(type) {
		case leave:
			commands = append(commands, tea.Quit)
		case suspend:
			commands = append(commands, tea.Suspend)
		default:
			p.world.carryOut(w)
		}
	}
	return tea.Batch(commands...)
}
