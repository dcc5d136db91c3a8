package conversation

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/script"
	"github.com/parley-run/parley/taint"
)

// Each refusal at construction (C-11.3, C-11.4, C-19.8); keys are refused in
// NewKeys.
func TestNewFlowRefuses(t *testing.T) {
	m, err := script.Parse("test", []byte("otherwise\n  reply"))
	if err != nil {
		t.Fatal(err)
	}
	good := Config{Keys: testKeys(t), Agent: agent.Definition{Model: m}}
	for _, test := range []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"no key", func(c *Config) { c.Keys = Keys{} }, "signing key"},
		{"no model", func(c *Config) { c.Agent.Model = nil }, "model"},
		{"a tainted system prompt", func(c *Config) { c.Agent.System = taint.Tainted("x", taint.OriginUser) }, "system prompt"},
		{"negative rotation", func(c *Config) { c.Settings.RotateEveryTurns = -1 }, "RotateEveryTurns"},
		{"negative window", func(c *Config) { c.Settings.MaxWindowTurns = -1 }, "MaxWindowTurns"},
		{"a window wider than a carry", func(c *Config) { c.Settings.MaxWindowTurns = maxWindowTurns + 1 }, "MaxWindowTurns"},
		{"negative text", func(c *Config) { c.Settings.MaxTurnChars = -1 }, "MaxTurnChars"},
		{"a text too long for a carry", func(c *Config) { c.Settings.MaxTurnChars = 121_000 }, "MaxTurnChars 121000"},
		{"a text past every number", func(c *Config) { c.Settings.MaxTurnChars = 1 << 62 }, "MaxTurnChars"},
		{"a carry too small", func(c *Config) { c.Settings.MaxCarryBytes = minCarryBytes - 1 }, "MaxCarryBytes"},
		{"a carry over the kernel's limit", func(c *Config) { c.Settings.MaxCarryBytes = kernel.MaxCarryBytes }, "MaxCarryBytes"},
		{"negative records", func(c *Config) { c.Settings.MaxInvalidRecords = -1 }, "MaxInvalidRecords"},
		{"negative rounds", func(c *Config) { c.Agent.Limits.Rounds = -1 }, "Rounds"},
		{"a compaction without a compactor", func(c *Config) { c.Agent.Limits.Compaction.Messages = 8 }, "compactor"},
		{"a memory scope without a memory", func(c *Config) { c.Agent.Limits.MemoryScope = "x" }, "memory"},
		{"limits of the agent beside the agent", func(c *Config) { c.Settings.Agent.Calls = 2 }, "Settings.Agent"},
		{"negative age", func(c *Config) { c.MaxEnvelopeAge = -time.Second }, "age"},
	} {
		config := good
		test.change(&config)
		flow, err := NewFlow(config)
		if err == nil || flow != nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: NewFlow = %v, %v; want an error that says %q", test.name, flow != nil, err, test.says)
		}
	}
	flow, err := NewFlow(good)
	if err != nil {
		t.Fatal(err)
	}
	if k := flow.Kernels()[0]; len(flow.Kernels()) != 1 || k.Name != "conversation" || k.Version != "1" || len(k.Needs) != 2 || len(flow.Effects()) != 1 {
		t.Errorf("flow %s %s needs %v and has %d effects", k.Name, k.Version, k.Needs, len(flow.Effects()))
	}
}

// The settings of C-11.16, byte for byte, with their defaults.
func TestSettingsBytes(t *testing.T) {
	want := `{"rotateEveryTurns":100,"maxWindowTurns":64,"maxTurnChars":32000,"maxCarryBytes":262144,` +
		`"maxInvalidRecords":100,"agent":{"rounds":16,"calls":32}}`
	if got := string(encoded(t, Settings{}.withDefaults())); got != want {
		t.Errorf("settings\n got %s\nwant %s", got, want)
	}
	limits := agent.Limits{Compaction: agent.Compaction{Messages: 40, Bytes: 65536}, MemoryScope: "a", WriteBackScope: "b"}
	want = strings.Replace(want, `"calls":32`, `"calls":32,"compaction":{"messages":40,"bytes":65536},"memoryScope":"a","writeBackScope":"b"`, 1)
	if got := string(encoded(t, Settings{Agent: limits}.withDefaults())); got != want {
		t.Errorf("settings of an agent that compacts and recalls\n got %s\nwant %s", got, want)
	}
}
