package conversation

import (
	"fmt"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
)

// Settings are the limits that steer a conversation. They are recorded at the
// start of each generation, so that a changed configuration acts from the next
// one on and makes no log diverge (C-11.16). Zero fields mean the defaults.
type Settings struct {
	RotateEveryTurns  int `json:"rotateEveryTurns"`  // consumed envelopes of a generation; 100 (C-19.1)
	MaxWindowTurns    int `json:"maxWindowTurns"`    // earlier turns that a model is given; 64 (C-20.13)
	MaxTurnChars      int `json:"maxTurnChars"`      // code points of a text; DefaultMaxTurnChars (C-11.5)
	MaxCarryBytes     int `json:"maxCarryBytes"`     // to which a carry is trimmed; 256 KiB (C-19.7)
	MaxInvalidRecords int `json:"maxInvalidRecords"` // rejections that are recorded; 100 (C-13.13)

	Agent agent.Limits `json:"agent"` // those of Config.Agent, where they are set; NewFlow puts them here

	Budget Budget `json:"budget,omitzero"` // none in logs that are older than it, and if zero
}

const (
	// minCarryBytes leaves room for turns beside what is never trimmed.
	minCarryBytes = 128 << 10
	// roomBeside is what the kernel's limits must hold beside a trimmed carry and
	// the largest envelope.
	roomBeside = 64 << 10
	// maxWindowTurns is the largest MaxWindowTurns.
	maxWindowTurns = 4096
)

// withDefaults returns the settings with the defaults in place of zeros.
func (s Settings) withDefaults() Settings {
	for _, field := range []struct {
		value    *int
		fallback int
	}{
		{&s.RotateEveryTurns, 100},
		{&s.MaxWindowTurns, 64},
		{&s.MaxTurnChars, DefaultMaxTurnChars},
		{&s.MaxCarryBytes, 256 << 10},
		{&s.MaxInvalidRecords, 100},
	} {
		if *field.value == 0 {
			*field.value = field.fallback
		}
	}
	s.Agent = s.Agent.WithDefaults()
	s.Budget = s.Budget.withDefaults()
	return s
}

// check refuses limits that could break the kernel's: a carry holds the trimmed
// turns and one envelope, a model call's input the window and one text (C-19.8).
func (s Settings) check() error {
	for _, field := range []struct {
		name  string
		value int
		least int
	}{
		{"RotateEveryTurns", s.RotateEveryTurns, 1},
		{"MaxWindowTurns", s.MaxWindowTurns, 1},
		{"MaxTurnChars", s.MaxTurnChars, 1},
		{"MaxCarryBytes", s.MaxCarryBytes, minCarryBytes},
		{"MaxInvalidRecords", s.MaxInvalidRecords, 1},
		{"Agent.Rounds", s.Agent.Rounds, 1},
		{"Agent.Calls", s.Agent.Calls, 1},
	} {
		if field.value < field.least {
			return fmt.Errorf("setting %s is %d, less than %d", field.name, field.value, field.least)
		}
	}
	if s.MaxWindowTurns > maxWindowTurns {
		return fmt.Errorf("setting MaxWindowTurns is %d, more than %d", s.MaxWindowTurns, maxWindowTurns)
	}
	if s.Agent.Calls > maxCalledTools {
		return fmt.Errorf("setting Agent.Calls is %d, more than %d", s.Agent.Calls, maxCalledTools)
	}
	if s.MaxTurnChars > kernel.MaxCarryBytes || s.MaxCarryBytes > kernel.MaxCarryBytes ||
		s.MaxCarryBytes+maxEnvelopeBytes(s.MaxTurnChars)+roomBeside > kernel.MaxCarryBytes {
		return fmt.Errorf("settings MaxCarryBytes %d and MaxTurnChars %d could make a carry larger than the kernel's %d bytes: lower one of them",
			s.MaxCarryBytes, s.MaxTurnChars, kernel.MaxCarryBytes)
	}
	return s.Budget.check()
}

// windowBytes is how much of a carry its turns may take: the window is kept
// within it, so that the trim at a rotation is the last resort.
func (s Settings) windowBytes() int { return s.MaxCarryBytes - fixedCarryBytes - s.summaryBytes() }

// summaryBytes is how much of a carry a summary may take: a quarter of what is
// not fixed, where there is a summarizer.
func (s Settings) summaryBytes() int {
	if s.Budget.Summarizer == "" {
		return 0
	}
	return (s.MaxCarryBytes - fixedCarryBytes) / 4
}
