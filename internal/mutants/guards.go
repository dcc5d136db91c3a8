package main

import "slices"

// mutants are the guards of C-44 that stand by now, and some of the same kind.
var mutants = slices.Concat(guards, sharedGuards)

// guards are those that stand in conversations of one owner, and around them.
var guards = []mutant{
	{
		guard: "a retry of a turn that was begun is no barge-in (C-14.9)",
		file:  "conversation/cuts.go", from: `if b.ID != "" && b.ID == a.key() && r.begun(b.ID) {`, to: `if false {`,
		test: "TestRetryIsNoBargeIn",
	},
	{
		guard: "a rotation keeps the keys of the turns that were begun (C-14.9)",
		file:  "conversation/flow.go", from: `replaySet: d.replay, Invalid: d.invalid`, to: `Invalid: d.invalid`,
		test: "TestRetryIsNoBargeIn",
	},
	{
		guard: "a key counts only if the stored message bears it out (C-14.10)",
		file:  "conversation/cuts.go", from: `b.ID == a.key() && r.begun`, to: `r.begun`,
		test: "TestRetryIsNoBargeIn",
	},
	{
		guard: "the look for what waits comes behind the fence (C-14.12, K9)",
		file:  "conversation/cutin.go", from: `c.looked || c.early && inDecider`, to: `c.looked || c.early && inDecider && false`,
		test: "TestMessageDoesNotCutItself",
	},
	{
		guard: "the turn's signal is merged into the model call's own (C-14.14)",
		file:  "agent/modeleffect.go", from: `call, interrupted, release := signalFrom(ctx).merged(ctx)`,
		to:   `call, interrupted, release := Signal(nil).merged(ctx)`,
		test: "TestBargeInDuringAStream", pkg: "./conversation",
	},
	{
		guard: "the subscription of a turn is released (C-14.13)",
		file:  "conversation/cutin.go", from: "\t\tc.release()\n", to: "",
		test: "TestSubscriptionsOfTurns",
	},
	{
		guard: "a stop ends the turn that it names and no other (C-46.3)",
		file:  "conversation/cuts.go", from: "return *b.Turn == r.turn\n", to: "return true\n",
		test: "TestStopOfAnotherTurn",
	},
	{
		guard: "a stop is the host's word (C-46.1)",
		file:  "conversation/cuts.go", from: `r.flow.config.Keys.verify(e) && b.ConversationID`, to: `b.ConversationID`,
		test: "TestForgedStop",
	},
	{
		guard: "a carry is trimmed (C-19.7)",
		file:  "conversation/flow.go", from: `}.trim(d.settings.MaxCarryBytes)`, to: `}`,
		test: "TestCarryIsTrimmed",
	},
	{
		guard: "the prompt is tainted (C-13.17)",
		file:  "conversation/answer.go", from: `Prompt: text, PromptOrigin: origin,`, to: `Prompt: text,`,
		test: "TestDialogue",
	},
	{
		guard: "what was asked earlier is tainted (C-13.17)",
		file:  "conversation/window.go", from: "\t\treturn t.User\n",
		to:   "\t\ttext, _ := taint.Reveal(t.User, taint.OriginUser)\n\t\treturn taint.Plain(text)\n",
		test: "TestDialogue",
	},
	{
		guard: "a tainted text stays out of instructions (C-8.3)",
		file:  "taint/taint.go", from: "\tif t.IsTainted() {\n\t\treturn \"\", ErrTaintedContent\n\t}\n\treturn t.value, nil\n", to: "\treturn t.value, nil\n",
		test: "TestPositions",
	},
	{
		guard: "a summary is tainted (C-8.9)",
		file:  "agent/boundary.go", from: `taint.Tainted(text, taint.OriginSummary)`, to: `taint.Plain(text)`,
		test: "TestCompactionBetweenToolCalls",
	},
	{
		guard: "a call has its result in the next message (C-9.6)",
		file:  "agent/normalise.go", from: `for _, c := range n.open {`, to: `for _, c := range n.open[:0] {`,
		test: "TestAnyTranscript",
	},
	{
		guard: "the effect of a step beside a run is on record with its request (K5)",
		file:  "agent/compact.go", from: `if err == nil && effect == "" {`, to: `if effect = configured; err == nil && effect == "" {`,
		test: "TestLongRunUnderAnotherConfiguration",
	},
	{
		guard: "a known id is replayed (C-13.7)",
		file:  "conversation/admit.go", from: `case a.replay.has(b.ID):`, to: `case false:`,
		test: "TestCopiedEnvelope",
	},
	{
		guard: "a forgotten id stays dead: the replay floor (C-13.8)",
		file:  "conversation/admit.go", from: `b.IssuedAt <= a.replay.Floor || age`, to: `age`,
		test: "TestReplayFloor",
	},
	{
		guard: "the domain of the signature (C-12.5)",
		file:  "conversation/keys.go", from: "\th.Write([]byte(signatureDomain))\n", to: "",
		test: "TestKnownAnswers",
	},
	{
		guard: "an edit names a turn of the window (C-27.3)",
		file:  "conversation/window.go", from: `return t.Ord == ord`, to: `return t.Ord <= ord`,
		test: "TestInvalidEdits",
	},
	{
		guard: "a denial of the kernel is the uniform refusal (C-23.7)",
		file:  "conversation/authority.go", from: `errors.Is(err, kernel.ErrNotFound) || errors.Is(err, kernel.ErrForbidden)`,
		to:   `errors.Is(err, kernel.ErrNotFound)`,
		test: "TestRuntimeRefusalIsUniform",
	},
	{
		guard: "a denied tool fails the turn as denied (C-25.2)",
		file:  "conversation/answer.go", from: `return ReasonDenied`, to: `return ReasonTurnFailed`,
		test: "TestDeniedTurn",
	},
	{
		guard: "authorization comes before the limit of readers (C-31.7)",
		file:  "conversation/live.go", from: "\tif err := c.AuthorizeRead(ctx, caller, id); err != nil {\n\t\treturn nil, err\n\t}\n",
		to:   "",
		test: "TestMaxReaders",
	},
	{
		guard: "an open stream is asked again for its caller (C-31.8)",
		file:  "gateway/readmit.go", from: `if time.Since(s.admitted) < reauth {`, to: `if time.Since(s.admitted) < 100*reauth {`,
		test: "TestReauth",
	},
	{
		guard: "over HTTP an edit of nothing is no message (C-27.13)",
		file:  "gateway/conversations.go", from: `message.EditOf == 0 {`, to: `false {`,
		test: "TestBadRequests",
	},
	{
		guard: "a number that its signed form would change is not signed (C-27.13)",
		file:  "conversation/bounds.go", from: `m.EditOf < 0 || m.EditOf > maxInteger:`, to: `m.EditOf < 0:`,
		test: "TestTurnBounds",
	},
	{
		guard: "a stranger's description does not imitate the fence (C-8.3)",
		file:  "taint/stranger.go", from: `if neutralise(text) != text {`, to: `if false {`,
		test: "TestStrangerRefused",
	},
	{
		guard: "a stranger's description hides nothing (C-8.3)",
		file:  "taint/stranger.go", from: `case hidden(r, before):`, to: `case hidden(r, before) && false:`,
		test: "TestStrangerRefused",
	},
	{
		guard: "the words of a stranger's schema are looked at (C-8.3)",
		file:  "tool/mcp/list.go", from: `if token.Kind() != '"' {`, to: `if true {`,
		test: "TestOfferOfHostile",
	},
	{
		guard: "a schema that leads into a circle is refused (C-10.18)",
		file:  "tool/bounds.go", from: "\t\treturn errEndless\n", to: "",
		test: "TestNewSchemaRefuses",
	},
	{
		guard: "a check of arguments is paid for before it is made (C-10.18)",
		file:  "tool/bounds.go", from: `w.left -= (stepCost + size(instance) + size(m["enum"]) + size(m["const"]) + entryCost*entries(m, instance)) * depth`, to: `w.left--`,
		test: "TestMisfitCostsTooMuch",
	},
	{
		guard: "an answer over which the SDK panics ends nothing else",
		file:  "tool/mcp/follow.go", from: `if r := recover(); r != nil {`, to: `if r := any(nil); r != nil {`,
		test: "TestHostileAnswers",
	},
	{
		guard: "a refusal is bounded, whatever kind it says it is",
		file:  "tool/mcp/http.go", from: ` && answer.StatusCode >= 200 && answer.StatusCode < 300`, to: ``,
		test: "TestHTTPEndless",
	},
	{
		guard: "a server does not have secrets written into the log",
		file:  "tool/mcp/follow.go", from: `printable(s.config.hide(err.Error()), 200)`, to: `printable(err.Error(), 200)`,
		test: "TestSecretsAreNotEchoed",
	},
	{
		guard: "an inbox that could not be read once is read again (C-14.13)",
		file:  "conversation/cutin.go", from: "\t\t\tc.failing = true\n\t\t\treturn false\n", to: "\t\t\treturn true\n",
		test: "TestWatchSurvivesAFailedRead",
	},
	{
		guard: "nothing is shown that is not on record (C-28.6)",
		file:  "agent/modeleffect.go", from: `room: roomBehind(before)`, to: `room: roomBehind("")`,
		test: "TestLongRepliesAreShownAsRecorded",
	},
	{
		guard: "arguments that do not fit do not reach the tool (C-10.17)",
		file:  "agent/call.go", from: `case known.schema != nil:`, to: `case false:`,
		test: "TestArgumentsAreChecked",
	},
	{
		guard: "what does not fit is told fenced (C-10.17)",
		file:  "agent/loop.go", from: `Did{Text: taint.Tainted(tellMisfit+call.Misfit, taint.ToolOrigin(call.Name)), Failed: true}`,
		to:   `told(tellMisfit + call.Misfit)`,
		test: "TestArgumentsAreChecked",
	},
	{
		guard: "a call of a set that was cut is unknown (C-10.20)",
		file:  "agent/perform.go", from: `mode == kernel.Once && (late || errors.Is(err, kernel.ErrOutcomeUnknown))`, to: `mode == kernel.Once && late`,
		test: "TestToolsetErrors",
	},
	{
		guard: "an MCP server that dies leaves a call unknown (C-10.20)",
		file:  "tool/mcp/server.go", from: `kernel.ErrOutcomeUnknown)`, to: `tool.ErrAbsent)`,
		test: "TestChildDies",
	},
	{
		guard: "what an MCP program has started ends with it",
		file:  "tool/mcp/child.go", from: "\t\tkillGroup(cmd) // what it has left behind\n", to: "",
		test: "TestCloseEndsTheGroup",
	},
	{
		guard: "an MCP program is given no key of Parley's",
		file:  "tool/mcp/child.go", from: `var env []string`, to: `env := os.Environ()`,
		test: "TestChildEnvironment",
	},
	{
		guard: "headers are for the MCP server that was named",
		file:  "tool/mcp/http.go", from: `return http.ErrUseLastResponse`, to: `return nil`,
		test: "TestHTTPRedirect",
	},
	{
		guard: "the budget evicts (C-20.2)",
		file:  "conversation/budget.go", from: `p.shown = p.visible[len(p.visible)-min(p.fit.Keep, len(p.visible)):]`, to: `p.shown = p.visible`,
		test: "TestInterruptedSummaryWithoutAnInterruption",
	},
	{
		guard: "what was evicted leaves the window (C-20.3, C-21.1)",
		file:  "conversation/window.go", from: "\tgone := max(len(w.turns)-newest, 0)\n", to: "\tgone := 0\n",
		test: "TestFitNeverSkips",
	},
	{
		guard: "the costs that are on record serve (C-20.12)",
		file:  "conversation/turn.go", from: "\td.window.price(p.fit.Counted, p.visible)\n", to: "",
		test: "TestReplayWithAnotherCounter",
	},
	{
		guard: "the outcome of the summarizer is recorded (C-21.9)",
		file:  "conversation/summary.go", from: `out, err := d.c.Decide(idSummarized(n), SourceBudget, func(context.Context) (summarized, error) {`,
		to:   `out, err := func(f func(context.Context) (summarized, error)) (summarized, error) { return f(nil) }(func(context.Context) (summarized, error) {`,
		test: "TestFailingSummarizer",
	},
	{
		guard: "a summary without room is left out of the turn (C-21.6)",
		file:  "conversation/summary.go", from: `fit.DropSummary || beside+cost > d.room(fit.Scale)`, to: `fit.DropSummary`,
		test: "TestNewSummaryBesideALargePrompt",
	},
	{
		guard: "a carried summary is tainted as one (C-21.4)",
		file:  "conversation/summary.go", from: `r.IsZero() || r.Text.Origin() == taint.OriginSummary && r.Tokens`, to: `r.IsZero() || r.Tokens`,
		test: "TestCarriedSummary",
	},
	{
		guard: "a page is served only if its origin is listed (C-32.1)",
		file:  "gateway/edge.go", from: `case len(origins) > 0 && !listed, len`, to: `case len(origins) > 1, len`,
		test: "TestOrigin",
	},
	{
		guard: "a Host that is not the server's is refused (C-32.5)",
		file:  "gateway/edge.go", from: `case !e.knows(r.Host):`, to: `case false:`,
		test: "TestHost",
	},
	{
		guard: "authorization stands before the limit of posts (C-31.7)",
		file:  "gateway/gateway.go", from: "\tif err := g.admit(x); err != nil {\n\t\treturn err\n\t}\n\tif wait > 0 {\n\t\treturn TooMany(\"posts\", wait)\n\t}\n",
		to:   "\tif wait > 0 {\n\t\treturn TooMany(\"posts\", wait)\n\t}\n\tif err := g.admit(x); err != nil {\n\t\treturn err\n\t}\n",
		test: "TestPostRate",
	},
	{
		guard: "authorization stands before the limits of streams (C-31.7)",
		file:  "gateway/gateway.go", from: "\tif err := g.admit(x); err != nil {\n\t\treturn err\n\t}\n\tif wait",
		to:   "\tif p := x.r.URL.Path; p[len(p)-7:] == \"/events\" {\n\t\treturn nil\n\t}\n\tif err := g.admit(x); err != nil {\n\t\treturn err\n\t}\n\tif wait",
		test: "TestStreamsPerCaller",
	},
	{
		guard: "the posts of an identity are limited (C-32.9)",
		file:  "gateway/gateway.go", from: `if wait > 0 {`, to: `if false {`,
		test: "TestPostRate",
	},
	{
		guard: "what a proxy says counts only if it is trusted",
		file:  "server/proxies.go", from: `if isTrusted(trusted, peerOf(r)) {`, to: `if true {`,
		test: "TestProxies",
	},
	{
		guard: "a header stands over a cookie (who is there, C-31.1)",
		file:  "server/caller.go", from: `len(given) > 0 {`, to: `len(given) > 0 && len(r.Cookies()) == 0 {`,
		test: "TestSessionRefusals",
	},
	{
		guard: "of two cookies neither counts (who is there, C-31.1)",
		file:  "server/caller.go", from: `len(cookies) != 1`, to: `len(cookies) == 0`,
		test: "TestSessionRefusals",
	},
	{
		guard: "a secret of one kind is good for nothing else (who is there, C-31.1)",
		file:  "server/datadir/keyring.go", from: `!ok || token.Kind != kind || token.Over(now)`, to: `!ok || token.Over(now)`,
		test: "TestRedeemLink",
	},
	{
		guard: "a session ends with its token (who is there, C-31.8)",
		file:  "server/datadir/keyring.go", from: `if token.Parent != "" {`, to: `if false {`,
		test: "TestSessionOfToken",
	},
	{
		guard: "what has expired is refused (who is there, C-31.8)",
		file:  "server/datadir/keyring.go", from: ` || token.Over(now) {`, to: ` {`,
		test: "TestRedeemLink",
	},
	{
		guard: "a link is gone when its session comes (who is there, C-31.1)",
		file:  "server/datadir/session.go", from: `addSession(slices.Delete(tokens, i, i+1), session)`, to: `addSession(tokens, session)`,
		test: "TestRedeemLinkOnce",
	},
	{
		guard: "a JWT is made for this server (and who is there, C-31.1)",
		file:  "server/issuer/issuer.go", from: `!slices.Contains(token.Audience, i.config.Audience)`, to: `slices.Contains(token.Audience, "")`,
		test: "TestJWT",
	},
	{
		guard: "a JWT ends (and who is there, C-31.8)",
		file:  "server/issuer/claims.go", from: `if !now.Before(until) {`, to: `if false {`,
		test: "TestJWT",
	},
	{
		guard: "no issuer names the operator (and who is there, C-31.1)",
		file:  "server/issuer/claims.go", from: `case who == i.operator:`, to: `case false:`,
		test: "TestJWT",
	},
	{
		guard: "invented keys make nobody ask (and who is there, C-32.12)",
		file:  "server/issuer/questions.go", from: `now.Sub(k.asked) >= keyPause`, to: `true`,
		test: "TestKeyFlood",
	},
	{
		guard: "an issuer is asked under TLS (and who is there, C-31.1)",
		file:  "server/issuer/questions.go", from: `r.URL.Scheme != "https" && !local(r.URL)`, to: `false`,
		test: "TestIssuerAnswers",
	},
	{
		guard: "who fails too often waits (and who is there, C-32.12)",
		file:  "server/tally.go", from: `case len(one.times) >= t.most:`, to: `case false:`,
		test: "TestSessionFailures",
	},
}
