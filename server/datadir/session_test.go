package datadir_test

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

// standing is whether the keyring knows the secret as one of the kind.
func standing(t *testing.T, ring *datadir.Keyring, kind datadir.Kind, secret identity.Secret) bool {
	t.Helper()
	_, err := ring.Find(kind, secret.Reveal())
	if err != nil && !errors.Is(err, datadir.ErrNoToken) {
		t.Fatal(err)
	}
	return err == nil
}

// A link opens one session, of its identity, for 30 days; wrong, used and
// expired codes are refused alike; no secret is good for anything else.
func TestRedeemLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := open(t)
		ring := dir.Keyring()
		ann := identity.Identity{Tenant: identity.Some("acme"), Actor: "ann"}
		link, code, err := dir.CreateLink(t.Context(), ann, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		_, late, err := dir.CreateLink(t.Context(), ann, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		_, bearer, err := dir.CreateToken(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second)
		session, cookie, err := dir.RedeemLink(t.Context(), code.Reveal())
		if err != nil || session.Identity != ann || session.ID != link.ID || time.Until(session.Expires) != datadir.SessionLife {
			t.Fatalf("RedeemLink = %+v, %v, want a session of %+v for %v", session, err, ann, datadir.SessionLife)
		}
		if got, err := ring.Find(datadir.KindSession, cookie.Reveal()); err != nil || got != session {
			t.Errorf("Find(session) = %+v, %v, want %+v", got, err, session)
		}
		time.Sleep(time.Second)
		for what, secret := range map[string]identity.Secret{
			"used": code, "expired": late, "a session": cookie, "a token": bearer,
			"wrong": identity.NewSecret("parley_" + strings.Repeat("x", 43)), "no code": identity.NewSecret("x"),
		} {
			if _, _, err := dir.RedeemLink(t.Context(), secret.Reveal()); err == nil || err.Error() != datadir.ErrNoToken.Error() {
				t.Errorf("RedeemLink of a code that is %s = %v, want ErrNoToken and no more", what, err)
			}
		}
		if standing(t, ring, datadir.KindToken, cookie) || standing(t, ring, datadir.KindSession, bearer) || standing(t, ring, datadir.KindToken, late) {
			t.Error("a secret of one kind is taken for one of another")
		}
		time.Sleep(datadir.SessionLife - time.Second - time.Nanosecond)
		if !standing(t, ring, datadir.KindSession, cookie) {
			t.Error("the session is over before its time")
		}
		time.Sleep(time.Nanosecond)
		if standing(t, ring, datadir.KindSession, cookie) {
			t.Error("the session outlives its time")
		}
		if text := read(t, dir, "tokens"); strings.Contains(text, code.Reveal()[7:]) || strings.Contains(text, cookie.Reveal()[7:]) {
			t.Error("a secret lies in the tokens file")
		}
	})
}

func TestLinkLife(t *testing.T) {
	dir := open(t)
	for _, life := range []time.Duration{-time.Hour, 0, time.Millisecond, datadir.MaxLinkLife + 1} {
		if _, _, err := dir.CreateLink(t.Context(), me, life); err == nil {
			t.Errorf("CreateLink for %v made one", life)
		}
	}
	if _, _, err := dir.CreateLink(t.Context(), identity.Identity{Actor: "parley:service"}, time.Hour); err == nil {
		t.Error("CreateLink made one for a service (C-34.2)")
	}
	if _, _, err := dir.CreateTokenFor(t.Context(), me, -time.Hour); err == nil {
		t.Error("CreateTokenFor made a token that is over")
	}
}

// Of those who redeem a link at once one is let in, and at no moment the file
// holds both link and session, or neither: a crash has to leave one of the two.
func TestRedeemLinkOnce(t *testing.T) {
	dir := open(t)
	for range 5 {
		_, code, err := dir.CreateLink(t.Context(), me, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Count(read(t, dir, "tokens"), "\n")
		done, seen := make(chan struct{}), make(chan int, 1)
		go func() {
			for {
				select {
				case <-done:
					seen <- want
					return
				default:
					if tokens, err := dir.Tokens(); err != nil || len(tokens) != want {
						seen <- len(tokens)
						return
					}
				}
			}
		}()
		var all sync.WaitGroup
		opened := make(chan identity.Secret, 4)
		for range cap(opened) {
			all.Go(func() {
				if _, cookie, err := dir.RedeemLink(t.Context(), code.Reveal()); err == nil {
					opened <- cookie
				} else if !errors.Is(err, datadir.ErrNoToken) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		close(done)
		if len(opened) != 1 {
			t.Fatalf("a link has opened %d sessions, want 1", len(opened))
		}
		if got := <-seen; got != want {
			t.Fatalf("in between the file held %d records, want %d", got, want)
		}
	}
}

// A session ends with the token that opened it: when that is revoked, expired, or
// deleted by hand.
func TestSessionOfToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := open(t)
		ring := dir.Keyring()
		session := func(life time.Duration) (datadir.Token, identity.Secret) {
			t.Helper()
			token, _, err := dir.CreateTokenFor(t.Context(), me, life)
			if err != nil {
				t.Fatal(err)
			}
			_, cookie, err := dir.OpenSession(t.Context(), me, token.ID, time.Time{})
			if err != nil || !standing(t, ring, datadir.KindSession, cookie) {
				t.Fatalf("OpenSession: %v", err)
			}
			return token, cookie
		}
		revoked, a := session(time.Hour)
		_, expired := session(time.Hour)
		_, other := session(2 * time.Hour)
		if err := dir.RevokeToken(t.Context(), revoked.ID); err != nil {
			t.Fatal(err)
		}
		if standing(t, ring, datadir.KindSession, a) || !standing(t, ring, datadir.KindSession, expired) {
			t.Error("revoking a token ends its own sessions, and those alone")
		}
		if _, _, err := dir.OpenSession(t.Context(), me, revoked.ID, time.Time{}); !errors.Is(err, datadir.ErrNoToken) {
			t.Errorf("OpenSession with a revoked token = %v, want ErrNoToken", err)
		}
		time.Sleep(time.Hour)
		if standing(t, ring, datadir.KindSession, expired) || !standing(t, ring, datadir.KindSession, other) {
			t.Error("a session ends when its token expires, and not before")
		}
		tokens, err := dir.Tokens()
		if err != nil {
			t.Fatal(err)
		}
		rest := slices.DeleteFunc(tokens, func(t datadir.Token) bool { return t.Kind == datadir.KindToken })
		write(t, dir, "tokens", lines(t, rest))
		if standing(t, ring, datadir.KindSession, other) {
			t.Error("a session outlives the line of its token")
		}
		if _, _, err := dir.CreateToken(t.Context(), me); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(read(t, dir, "tokens"), "\n"); n != 1 {
			t.Errorf("a change leaves %d records, want the new one alone", n)
		}
	})
}

// lines is a tokens file.
func lines(t *testing.T, tokens []datadir.Token) string {
	t.Helper()
	var text []byte
	for _, token := range tokens {
		line, err := json.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	return string(text)
}

// A session that no token of ours has opened ends when it is told to, after 30
// days at most; it can be revoked by its id.
func TestSessionUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := open(t)
		ring := dir.Keyring()
		session, cookie, err := dir.OpenSession(t.Context(), me, "", time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		far, _, err := dir.OpenSession(t.Context(), me, "", time.Now().Add(datadir.SessionLife*2))
		if err != nil || far.Expires.After(time.Now().Add(datadir.SessionLife)) {
			t.Errorf("OpenSession = %+v, %v, want 30 days at most", far, err)
		}
		if _, _, err := dir.OpenSession(t.Context(), me, "", time.Now()); !errors.Is(err, datadir.ErrNoToken) {
			t.Errorf("OpenSession until now = %v, want ErrNoToken", err)
		}
		if !standing(t, ring, datadir.KindSession, cookie) {
			t.Error("the session does not stand")
		}
		time.Sleep(time.Minute)
		if standing(t, ring, datadir.KindSession, cookie) {
			t.Error("the session outlives its time")
		}
		if err := dir.RevokeToken(t.Context(), session.ID); !errors.Is(err, datadir.ErrNoToken) {
			t.Errorf("RevokeToken of what is over = %v, want ErrNoToken", err)
		}
		if err := dir.RevokeToken(t.Context(), far.ID); err != nil {
			t.Error(err)
		}
	})
}

// C-32.12: an identity has 32 sessions at most, and a new one ends its oldest,
// nobody else's.
func TestManySessions(t *testing.T) {
	dir := open(t)
	ring := dir.Keyring()
	_, others, err := dir.OpenSession(t.Context(), identity.Identity{Actor: "me", Tenant: identity.Some("")}, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	_, code, err := dir.CreateLink(t.Context(), me, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var cookies []identity.Secret
	for range datadir.MaxSessions + 1 {
		_, cookie, err := dir.OpenSession(t.Context(), me, "", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, cookie)
	}
	_, cookie, err := dir.RedeemLink(t.Context(), code.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	for i, cookie := range append(cookies, cookie, others) {
		if got := standing(t, ring, datadir.KindSession, cookie); got != (i >= 2) {
			t.Errorf("session %d stands: %t", i, got)
		}
	}
}

// C-32.12: the file holds 10,000 records and 16 MiB at most; what is over makes
// room, and a full file can be read and revoked from.
func TestFullTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("reads and writes 16 MiB some times")
	}
	dir := open(t)
	record := func(i, length int) datadir.Token {
		name := identity.Some(strings.Repeat("\x01", length))
		return datadir.Token{
			ID: fmt.Sprintf("%010d", i), Identity: identity.Identity{Actor: "me", Tenant: name, OnBehalfOf: name},
			Created: time.Unix(0, 0).UTC(), SHA256: fmt.Sprintf("%064x", i),
		}
	}
	fill := func(n, length int) string {
		var tokens []datadir.Token
		for i := range n {
			tokens = append(tokens, record(i, length))
		}
		return lines(t, tokens)
	}
	long := record(0, identity.MaxFieldBytes)
	for what, text := range map[string]string{"records": fill(10_000, 0), "bytes": fill(16<<20/len(lines(t, []datadir.Token{long})), identity.MaxFieldBytes)} {
		write(t, dir, "tokens", text)
		if _, _, err := dir.CreateLink(t.Context(), long.Identity, time.Hour); err == nil || !strings.Contains(err.Error(), "is full") {
			t.Errorf("full of %s: CreateLink = %v, want an error that says so", what, err)
		}
		if read(t, dir, "tokens") != text {
			t.Errorf("full of %s: a refusal has changed the file", what)
		}
		if err := dir.RevokeToken(t.Context(), long.ID); err != nil {
			t.Errorf("full of %s: RevokeToken: %v", what, err)
		}
	}
	over := record(10_000, 0)
	over.Expires = time.Now().Add(-time.Second).UTC()
	write(t, dir, "tokens", fill(9_999, 0)+lines(t, []datadir.Token{over}))
	if _, _, err := dir.CreateToken(t.Context(), me); err != nil {
		t.Errorf("with one that is over: CreateToken: %v", err)
	}
}
