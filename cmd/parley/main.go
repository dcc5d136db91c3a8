// Command parley runs a Parley server, talks with its agent in a terminal, and
// opens the log of any conversation.
//
// It exits with 0 on success, 1 on an error, which is one line on standard
// error, and 2 where the command line is wrong.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/parley-run/parley/cmd/parley/printable"
)

// version is set by the linker.
var version = "dev"

// commands is the command line.
type commands struct {
	Serve        serveCommand         `cmd:"" help:"Run the server."`
	Chat         chatCommand          `cmd:"" help:"Talk with the agent: reads lines, prints answers."`
	Token        tokenCommands        `cmd:"" help:"Make, list and revoke tokens; works beside a running server."`
	Link         linkCommand          `cmd:"" help:"Make a link to the page, which logs one person in, once; works beside a running server."`
	Conversation conversationCommands `cmd:"" help:"List, show, follow, stop and close conversations of a running server."`
	Lease        leaseCommands        `cmd:"" help:"Show who holds which part of the agent's body."`
	Log          logCommands          `cmd:"" help:"Open the log of a conversation, in the directory of a stopped server."`

	Version kong.VersionFlag `help:"Print the version."`
}

// dataFlags says which data directory is meant.
type dataFlags struct {
	Data string `env:"PARLEY_DATA" placeholder:"DIR" help:"Data directory; $$XDG_DATA_HOME/parley or ~/.local/share/parley unless named."`
}

// console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	os.Exit(run(os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run runs one command line and returns the exit status.
func run(args []string, terminal console) int {
	var line commands
	parser, err := kong.New(&line,
		kong.Name("parley"),
		kong.Description("Durable conversations between people and an agent."),
		kong.Vars{"version": "parley " + version},
		kong.Writers(terminal.out, terminal.err),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
		kong.Bind(terminal),
	)
	if err != nil {
		return complain(terminal, err, 1)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return complain(terminal, fmt.Errorf("%w; see parley --help", err), 2)
	}
	if err := parsed.Run(); err != nil {
		return complain(terminal, err, 1)
	}
	return 0
}

// complain says what is wrong in one line.
func complain(terminal console, err error, status int) int {
	fmt.Fprintf(terminal.err, "parley: %s\n", printable.Line(strings.TrimSpace(err.Error())))
	return status
}
