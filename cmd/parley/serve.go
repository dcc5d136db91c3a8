package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/parley-run/parley/server"
	"github.com/parley-run/parley/server/datadir"
)

// serverFlags are the flags of a server. They stand over the environment, the
// environment over the configuration file, the file over the defaults.
type serverFlags struct {
	dataFlags
	Config string `env:"PARLEY_CONFIG" placeholder:"FILE" help:"Configuration; parley.toml in the data directory, if it is there, unless named."`
	Model  string `env:"PARLEY_MODEL" placeholder:"NAME" help:"The model: eliza (the default), script:FILE, openai/NAME, anthropic/NAME."`
	System string `env:"PARLEY_SYSTEM" placeholder:"TEXT" help:"The agent's system prompt."`
}

// configuration is the server that flags, environment and file describe.
func (f serverFlags) configuration() (server.Config, error) {
	path, err := f.path()
	if err != nil {
		return server.Config{}, err
	}
	file := f.Config
	if file == "" {
		file = filepath.Join(path, datadir.ConfigName)
	}
	settings, err := server.ReadSettings(file)
	if err != nil && (f.Config != "" || !errors.Is(err, fs.ErrNotExist)) {
		return server.Config{}, err
	}
	settings.Model = cmp.Or(f.Model, settings.Model)
	settings.System = cmp.Or(f.System, settings.System)
	return server.Config{Data: path, Settings: settings, Version: version}, nil
}

type serveCommand struct {
	serverFlags
	Listen    string `env:"PARLEY_LISTEN" placeholder:"ADDR" help:"Address of the HTTP server, 127.0.0.1:7275 unless named; with port 0 any free one."`
	PublicURL string `env:"PARLEY_PUBLIC_URL" placeholder:"URL" help:"Where people meet the server, if that is elsewhere, such as https://chat.example.org."`
	TLSCert   string `env:"PARLEY_TLS_CERT" placeholder:"FILE" help:"Certificate, in PEM; with it the server speaks TLS alone."`
	TLSKey    string `env:"PARLEY_TLS_KEY" placeholder:"FILE" help:"Key of the certificate, in PEM."`
	H2C       *bool  `name:"h2c" env:"PARLEY_H2C" help:"Take HTTP/2 without TLS too."`
	Link      bool   `help:"Print a link to the page, which logs me in, once; on a terminal so it does anyway."`
}

// Run serves until a signal, or until the journal fails.
func (c *serveCommand) Run(ctx context.Context, terminal console) error {
	config, err := c.configuration()
	if err != nil {
		return err
	}
	c.override(&config.Settings)
	config.Log = slog.New(slog.NewTextHandler(terminal.err, nil))
	ctx, stop := untilSignal(ctx, nil)
	defer stop()
	s, err := server.New(ctx, config)
	if running, ok := errors.AsType[*server.RunningError](err); ok {
		return c.alreadyRuns(ctx, terminal, config, running)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(terminal.out, greeting(s))
	if hint := server.Hint(config.Settings.Model, os.Getenv); hint != "" {
		fmt.Fprintln(terminal.out, hint)
	}
	if c.Link || isTerminal(terminal.out) {
		printLink(ctx, terminal.out, s.Directory(), config.Log)
	}
	if !s.Local() && !s.Secure() {
		config.Log.Warn("other machines can reach this server, and tokens travel as they are: put TLS in front, or set tls_cert and tls_key", "address", s.URL())
	}
	return s.Run(ctx)
}

// alreadyRuns tells where the directory's server is met. A second start asks for
// the page like the first one.
func (c *serveCommand) alreadyRuns(ctx context.Context, terminal console, config server.Config, running error) error {
	if _, err := fmt.Fprintf(terminal.out, "%v\n", running); err != nil {
		return err
	}
	if !c.Link && !isTerminal(terminal.out) {
		return nil
	}
	dir, err := datadir.Existing(config.Data)
	if err != nil {
		return err
	}
	printLink(ctx, terminal.out, dir, config.Log)
	return nil
}

// override lets the flags of serve stand over the file.
func (c *serveCommand) override(s *server.Settings) {
	s.Listen = cmp.Or(c.Listen, s.Listen)
	s.PublicURL = cmp.Or(c.PublicURL, s.PublicURL)
	s.TLSCert, s.TLSKey = cmp.Or(c.TLSCert, s.TLSCert), cmp.Or(c.TLSKey, s.TLSKey)
	if c.H2C != nil {
		s.H2C = *c.H2C
	}
}

// greeting is the line of a start: where the server is, where its token lies,
// and how to talk with it.
func greeting(s *server.Server) string {
	chat, link := "make chat", "parley link"
	if standard, err := datadir.Default(); err != nil || standard != s.Directory().Path() {
		flag := "--data " + s.Directory().Path()
		chat, link = fmt.Sprintf("%s ARGS=%q", chat, flag), link+" "+flag
	}
	return fmt.Sprintf("parley serves at %s; the token of %q lies in %s; %s talks with it, %s prints a link to the page",
		s.URL(), server.Owner.Actor, s.Directory().OwnTokenFile(), chat, link)
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM, unless
// a SIGINT pulls the brake, which may be nil. From then on a second one kills the
// process.
func untilSignal(ctx context.Context, brake *brake) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for pulled := true; pulled; {
			select {
			case got := <-signals:
				pulled = got == os.Interrupt && brake.pull()
			case <-ctx.Done():
				pulled = false
			}
		}
		signal.Stop(signals) // before anybody begins to stop
		cancel()
	}()
	return ctx, cancel
}

// path is the data directory that the flags mean.
func (f dataFlags) path() (string, error) {
	if f.Data == "" {
		return datadir.Default()
	}
	return filepath.Abs(f.Data)
}
