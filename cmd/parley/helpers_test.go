package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-run/parley/server/datadir"
)

// scriptCommands are what the scripts can say beside the built-in commands.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"status":       status,
	"revoke-first": revokeFirst,
}

// status N COMMAND… wants the command to exit with status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failure, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		got = failure.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v exits with %d, want %d", args[1:], got, want)
	}
}

// revoke-first revokes the oldest token of $WORK/data.
func revokeFirst(ts *testscript.TestScript, _ bool, _ []string) {
	dir, err := datadir.Open(filepath.Join(ts.Getenv("WORK"), "data"))
	ts.Check(err)
	tokens, err := dir.Tokens()
	ts.Check(err)
	ts.Check(ts.Exec("parley", "token", "revoke", tokens[0].ID))
}
