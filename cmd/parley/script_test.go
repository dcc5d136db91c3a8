package main

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "renew what the scripts in testdata expect")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"parley": main})
}

// The command line, session by session: each file in testdata/script is one.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, Cmds: scriptCommands})
}
