package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/server/datadir"
)

// Two processes on one directory: the second is told who holds it.
func TestLockIsHeld(t *testing.T) {
	dir := open(t)
	first := lock(t, dir)
	_, err := dir.Lock()
	held, ok := errors.AsType[*datadir.HeldError](err)
	if !ok || held.PID != os.Getpid() || !strings.Contains(err.Error(), dir.Path()) {
		t.Fatalf("Lock() of a locked directory = %v, want a HeldError with %s and process %d", err, dir.Path(), os.Getpid())
	}
	if !dir.Held() {
		t.Errorf("Held() = false while it is locked")
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if dir.Held() {
		t.Errorf("Held() = true after Unlock")
	}
	if err := lock(t, dir).Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestLockWithin(t *testing.T) {
	dir := open(t)
	first := lock(t, dir)
	if _, err := dir.LockWithin(t.Context(), 50*time.Millisecond); err == nil {
		t.Fatalf("LockWithin took a lock that is held")
	}
	got := make(chan error)
	go func() {
		second, err := dir.LockWithin(t.Context(), time.Minute)
		if err == nil {
			err = second.Unlock()
		}
		got <- err
	}()
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("LockWithin after the holder went: %v", err)
	}
}

// The address counts only while its server lives: a token must never be sent to
// whoever listens there after a kill.
func TestAddress(t *testing.T) {
	dir := open(t)
	const address = "http://127.0.0.1:7275"
	check := func(when, want string) {
		t.Helper()
		got, ok, err := dir.Address()
		if got != want || ok != (want != "") || err != nil {
			t.Errorf("%s: Address() = %q, %t, %v, want %q", when, got, ok, err, want)
		}
	}
	check("nothing there", "")
	write(t, dir, "address", address+"\n")
	check("left behind by a killed server", "")
	l := lock(t, dir)
	check("the next server has not listened yet", "")
	if err := l.SetAddress(address); err != nil {
		t.Fatal(err)
	}
	check("running", address)
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	check("stopped", "")
	if _, err := os.Stat(filepath.Join(dir.Path(), "address")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a clean stop leaves the address: %v", err)
	}
}

func TestAddressDamaged(t *testing.T) {
	dir := open(t)
	lock(t, dir)
	for _, text := range []string{"", "127.0.0.1:1", "https://", "ftp://x", "\x00"} {
		write(t, dir, "address", text)
		if got, ok, err := dir.Address(); ok || err == nil {
			t.Errorf("Address() of %q = %q, %t, %v, want an error", text, got, ok, err)
		}
	}
}

// People may meet a server elsewhere than programs of this machine do; neither
// address outlives its server.
func TestPublicAddress(t *testing.T) {
	dir := open(t)
	check := func(when, want string) {
		t.Helper()
		if got, ok, err := dir.PublicAddress(); got != want || ok != (want != "") || err != nil {
			t.Errorf("%s: PublicAddress = %q, %t, %v, want %q", when, got, ok, err, want)
		}
	}
	check("no server", "")
	l := lock(t, dir)
	check("a server without an address", "")
	if err := errors.Join(l.SetPublicAddress(""), l.SetAddress("http://127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	check("a server", "http://127.0.0.1:1")
	if err := l.SetPublicAddress("https://chat.example.org"); err != nil {
		t.Fatal(err)
	}
	check("a server with a name", "https://chat.example.org")
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	check("a stopped server", "")
	write(t, dir, "public-address", "https://old.example.org\n") // left by a kill
	l = lock(t, dir)
	defer l.Unlock()
	if err := l.SetAddress("http://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	check("after a server that was killed", "http://127.0.0.1:1")
}
