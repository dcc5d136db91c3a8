package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/tool"
	"github.com/parley-run/parley/tool/mcp"
)

// MCP says where an MCP server is, whose tools the agent has while it is there.
// Either Command or URL is set.
type MCP struct {
	Command string   `toml:"command"` // a program to start, spoken with over its input and output
	Args    []string `toml:"args"`    // of the program
	// Env is its environment, beside what every program needs: NAME passes on a
	// variable of Parley's, NAME=VALUE sets one.
	Env []string `toml:"env"`

	URL string `toml:"url"` // of a server that is met by streamable HTTP
	// HeaderEnv names for each header of its requests the environment variable that
	// holds the value, so that no secret stands in the file.
	HeaderEnv map[string]string `toml:"header_env"`

	// Repeatable says that its tools do no harm when they are called again after a
	// crash in the middle of a call.
	Repeatable bool `toml:"repeatable"`
	// Timeout is how long a call may take, such as "30s"; mcp.DefaultTimeout if
	// empty, agent.DefaultToolTimeout at most.
	Timeout string `toml:"timeout"`
}

// config is the configuration of the server of that name. Errors repeat no value.
func (m MCP) config(name string, getenv func(string) string, log *slog.Logger) (mcp.Config, error) {
	config := mcp.Config{Name: name, Command: m.Command, Args: m.Args, URL: m.URL, Log: log}
	if m.Repeatable {
		config.Mode = kernel.Repeatable
	}
	if m.Timeout != "" {
		var err error
		config.Timeout, err = time.ParseDuration(m.Timeout)
		if err != nil || config.Timeout <= 0 || config.Timeout > agent.DefaultToolTimeout {
			return mcp.Config{}, fmt.Errorf(`the timeout is no time up to %v, such as "30s"`, agent.DefaultToolTimeout)
		}
	}
	var err error
	for _, entry := range m.Env {
		variable, value, set := strings.Cut(entry, "=")
		if set {
			config.Env = put(config.Env, variable, value)
		} else if config.Env, err = fromEnv(config.Env, variable, variable, getenv); err != nil {
			return mcp.Config{}, err
		}
	}
	for _, header := range slices.Sorted(maps.Keys(m.HeaderEnv)) {
		if config.Header, err = fromEnv(config.Header, header, m.HeaderEnv[header], getenv); err != nil {
			return mcp.Config{}, err
		}
	}
	return config, nil
}

// fromEnv puts the value of an environment variable under a name.
func fromEnv(all map[string]identity.Secret, name, variable string, getenv func(string) string) (map[string]identity.Secret, error) {
	value := getenv(variable)
	if value == "" {
		return nil, fmt.Errorf("the environment variable %q is not set", variable)
	}
	return put(all, name, value), nil
}

func put(all map[string]identity.Secret, name, value string) map[string]identity.Secret {
	if all == nil {
		all = map[string]identity.Secret{}
	}
	all[name] = identity.NewSecret(value)
	return all
}

// check refuses what no environment could mend.
func (m MCP) check(name string) error {
	config, err := m.config(name, func(variable string) string { return cmp.Or(variable, " ") }, nil)
	if err == nil {
		_, err = mcp.New(config)
	}
	return err
}

// mcpServers are the MCP servers of a server.
type mcpServers []*mcp.Server

// newMCPServers makes them, in the order of their names. None is started.
func newMCPServers(settings Settings, getenv func(string) string, log *slog.Logger) (mcpServers, error) {
	var all mcpServers
	for _, name := range slices.Sorted(maps.Keys(settings.MCP)) {
		config, err := settings.MCP[name].config(name, getenv, log)
		if err != nil {
			return nil, fmt.Errorf("configuration: mcp.%s: %w", name, err)
		}
		server, err := mcp.New(config)
		if err != nil {
			return nil, fmt.Errorf("configuration: mcp.%s: %w", name, err)
		}
		all = append(all, server)
	}
	if len(all) > maxMCPServers {
		return nil, errors.New("configuration: more than " + fmt.Sprint(maxMCPServers) + " MCP servers")
	}
	return all, nil
}

// maxMCPServers bounds what a configuration can have started.
const maxMCPServers = 32

// sets are the servers as sets of tools.
func (s mcpServers) sets() []tool.Set {
	var sets []tool.Set
	for _, server := range s {
		sets = append(sets, server)
	}
	return sets
}

// mcpPatience is how long a start waits for its MCP servers, so that a turn that
// goes on has its tools. Those that take longer come later.
const mcpPatience = time.Second

// start begins to look for them, and waits a moment.
func (s mcpServers) start(ctx context.Context) {
	for _, server := range s {
		server.Start()
	}
	ctx, cancel := context.WithTimeout(ctx, mcpPatience)
	defer cancel()
	for _, server := range s {
		if server.Await(ctx) != nil {
			return
		}
	}
}

// close ends them side by side, since each takes its time.
func (s mcpServers) close() {
	var all sync.WaitGroup
	for _, server := range s {
		all.Go(server.Close)
	}
	all.Wait()
}
