package main

// leases are the guards of L-31.4, and what else keeps a body in one hand.
var leases = []mutant{
	{
		guard: "a lease's token is checked at the reservation (L-5.2)",
		file:  "lease/table.go", from: "func (cmd reserve) on(s state, _ instant) ([]event, error) {\n",
		to:   "func (cmd reserve) on(s state, _ instant) ([]event, error) {\n\tif s.claim != nil {\n\t\tcmd.fence.token = s.claim.token\n\t}\n",
		test: "TestLC4StaleTokens",
	},
	{
		guard: "a lease's token is checked at the release (L-5.2)",
		file:  "lease/attempt.go", from: "func (cmd stop) on(s state, _ instant) ([]event, error) {\n",
		to:   "func (cmd stop) on(s state, _ instant) ([]event, error) {\n\tif s.claim != nil {\n\t\tcmd.fence.token = s.claim.token\n\t}\n",
		test: "TestLC4StaleTokens",
	},
	{
		guard: "a lease's token is checked at the renewal (L-5.2)",
		file:  "lease/table.go", from: "func (cmd renew) on(s state, now instant) ([]event, error) {\n",
		to:   "func (cmd renew) on(s state, now instant) ([]event, error) {\n\tif s.claim != nil {\n\t\tcmd.fence.token = s.claim.token\n\t}\n",
		test: "TestLC4StaleTokens",
	},
	{
		guard: "a lease is its token's and not its conversation's (L-5.3)",
		file:  "lease/state.go", from: `subtle.ConstantTimeCompare(c.token[:], f.token[:]) != 1`, to: `subtle.ConstantTimeCompare(c.token[:], c.token[:]) != 1`,
		test: "TestLC10Linearizable",
	},
	{
		guard: "a lease's deadline is checked as the effect begins (L-8.8)",
		file:  "lease/table.go", from: "func (cmd begin) on(s state, _ instant) ([]event, error) {\n\tif err := s.holds(cmd.fence); err != nil {",
		to:   "func (cmd begin) on(s state, _ instant) ([]event, error) {\n\tif err := s.holds(cmd.fence); err == ErrStale {",
		test: "TestLC14EffectPastTheDeadline",
	},
	{
		guard: "a lease's deadline is settled before anything else (L-8.4)",
		file:  "lease/table.go", from: `c.blocked == "" && now.passed(c.deadline)`, to: `c.blocked == "" && now == (instant{})`,
		test: "TestRows",
	},
	{
		guard: "a lease's renewal that was written too late revives nothing (L-8.4)",
		file:  "lease/registry.go", from: `refusal == nil && r.now().passed(before.claim.deadline)`, to: `false`,
		test: "TestLC57SlowRenewal",
	},
	{
		guard: "a lease's deadline is on two clocks (L-8.7)",
		file:  "lease/lease.go", from: ` || i.mono >= deadline.mono`, to: ``,
		test: "TestTwoClocks",
	},
	{
		guard: "time frees no lease (L-6.5)",
		file:  "lease/table.go", from: `return []event{blocked{c.incarnation, Expired}}, nil`, to: `return []event{s.release(CauseEnded, "gone", Caller{}, now)}, nil`,
		test: "TestLC6TimeNeverFrees",
	},
	{
		guard: "a lease's operation is on record before its effect (L-9.1)",
		file:  "lease/event.go", from: `func (reserved) kind() string   { return "RESERVED" }`, to: `func (reserved) kind() string { return "" }`,
		test: "TestPersistBeforeEffect",
	},
	{
		guard: "a lease's store that fails is believed (L-7.3)",
		file:  "lease/registry.go", from: "\t\tr.config.Log.Error(", to: "\t\terr = nil\n\t\tr.failure.Store(nil)\n\t\tif err == nil {\n\t\t\treturn nil\n\t\t}\n\t\tr.config.Log.Error(",
		test: "TestStoreFailsAtEachWrite",
	},
	{
		guard: "a lease's command is decided and written in one turn (L-6.1)",
		file:  "lease/registry.go", from: `defer func() { <-s.turn }()`, to: `<-s.turn`,
		test: "TestWaitingIsCut",
	},
	{
		guard: "a lease's token dies with its process (L-5.4)",
		file:  "lease/event.go", from: `c.deadToken, c.attempt = true, nil`, to: `c.attempt = nil`,
		test: "TestLC20Restart",
	},
	{
		guard: "a lease that was there is blocked by a restart (L-30.1)",
		file:  "lease/table.go", from: `return []event{blocked{c.incarnation, Restarted}}, nil`, to: `return nil, nil`,
		test: "TestKill",
	},
	{
		guard: "a lease's grant is asked for again as the effect begins (L-4.1)",
		file:  "lease/guard.go", from: `granted := g.registry.granted(ctx, g.caller, g.slot.resource, p.action)`, to: `granted := true`,
		test: "TestSecondGrantCheck",
	},
	{
		guard: "a lease with an operation active is not stopped (L-15.2)",
		file:  "lease/state.go", from: `if active := s.claim.active(); len(active) > 0 {`, to: `if active := s.claim.active(); len(active) > 1 {`,
		test: "TestLC11ReleaseWhilePinned",
	},
	{
		guard: "a lease's completion is of the exact incarnation (L-9.2)",
		file:  "lease/table.go", from: "func (cmd complete) on(s state, now instant) ([]event, error) {\n\tif s.exact(cmd.of) != nil {", to: "func (cmd complete) on(s state, now instant) ([]event, error) {\n\tif s.claim == nil {",
		test: "TestRows",
	},
	{
		guard: "a lease's outcome that is not known blocks it (L-6.4)",
		file:  "lease/table.go", from: `case cmd.outcome == unknown && c.blocked == "":`, to: `case false:`,
		test: "TestLC42LostAnswer",
	},
	{
		guard: "a lease's effect that did not ask is not believed (L-4.2)",
		file:  "lease/guard.go", from: `case begun && err == nil:`, to: `case err == nil:`,
		test: "TestFaithlessAdapter",
	},
	{
		guard: "a lease's recovery is fenced at its last step (L-11.10)",
		file:  "lease/attempt.go", from: "func (cmd strike) on(s state, _ instant) ([]event, error) {\n", to: "func (cmd strike) on(s state, _ instant) ([]event, error) {\n\tif !s.runs(cmd.nonce) {\n\t\treturn nil, nil\n\t}\n",
		test: "TestLC53LateRecovery",
	},
	{
		guard: "a lease's stop that was let through pins the body (L-11.10)",
		file:  "lease/state.go", from: `a.struck && a.nonce != nonce`, to: `false && a.nonce != nonce`,
		test: "TestStruckStopPins",
	},
	{
		guard: "a lease's authority is asked for again before it is freed (L-15.7, L-16.4)",
		file:  "lease/ending.go", from: `granted := may(ctx)`, to: `granted := may != nil`,
		test: "TestSweepIsFenced",
	},
	{
		guard: "a lease's evidence is of the exact incarnation (L-15.5)",
		file:  "lease/attempt.go", from: `case s.exact(cmd.evidence.Incarnation) != nil:`, to: `case false:`,
		test: "TestLC60UnconfirmedEnd",
	},
	{
		guard: "a lease's evidence is not older than its newest operation (L-13.2)",
		file:  "lease/attempt.go", from: `if s.claim.newest > cmd.last {`, to: `if false {`,
		test: "TestOutdatedReport",
	},
	{
		guard: "a lease of a computer is not swept (L-16.7)",
		file:  "lease/sweep.go", from: `s.resource != Computer && `, to: ``,
		test: "TestSweepConditions",
	},
	{
		guard: "a lease of a native driver is not swept (L-16.3)",
		file:  "lease/sweep.go", from: `c.holder.Seat.Kind == Service && `, to: ``,
		test: "TestSweepConditions",
	},
	{
		guard: "a lease whose turn goes on is not swept (L-16.2)",
		file:  "lease/sweep.go", from: `if !over(limited) {`, to: `if false {`,
		test: "TestSweepConditions",
	},
	{
		guard: "a lease's record that cannot be read blocks (L-7.5)",
		file:  "lease/open.go", from: "\t\tif err != nil {\n\t\t\tnext := ", to: "\t\tif err != nil {\n\t\t\treturn state{resource: resource, next: events[len(events)-1].Seq + 1}\n\t\t\tnext := ",
		test: "TestDamaged",
	},
	{
		guard: "a lease's conflict names no person (L-19.2)",
		file:  "lease/request.go", from: `Owner: c.holder.Conversation`, to: `Owner: c.holder.Identity.Actor`,
		test: "TestNothingLeaks",
	},
	{
		guard: "a lease's conflict is for those who have the grant (L-19.4)",
		file:  "lease/table.go", from: "\tcase !cmd.granted:\n\t\treturn nil, ErrDenied\n\tcase s.claim != nil:", to: "\tcase !cmd.granted && s.claim == nil:\n\t\treturn nil, ErrDenied\n\tcase s.claim != nil:",
		test: "TestDenied",
	},
	{
		guard: "a lease's request is spent before anybody is woken for it (L-22.8)",
		file:  "lease/event.go", from: `func (spent) kind() string      { return "SPENT" }`, to: `func (spent) kind() string { return "" }`,
		test: "TestQueueSurvives",
	},
	{
		guard: "a lease's request is bound to its incarnation (L-20.6)",
		file:  "lease/request.go", from: "\tcase s.exact(cmd.of) != nil:\n", to: "\tcase s.claim == nil:\n",
		test: "TestQueueRefused",
	},
	{
		guard: "a lease's request wakes nobody who has lost the right (L-20.5)",
		file:  "lease/queue.go", from: `r.config.Wake != nil && r.granted(ctx, request.Requester, s.resource, "")`, to: `r.config.Wake != nil`,
		test: "TestQueueWakesNobody",
	},
	{
		guard: "the suite of a body notices an effect that does not heed the answer (L-4.2)",
		file:  "body/sim/sim.go", from: `if err := e.Begin(ctx); err != nil {`, to: `if err := e.Begin(ctx); err == context.Canceled {`,
		test: "TestContract",
	},
	{
		guard: "the suite of a body notices a stop that does not heed its guard (L-11.10)",
		file:  "body/sim/sim.go", from: `if err := guard(ctx); err != nil {`, to: `if err := guard(ctx); err == context.Canceled {`,
		test: "TestContract",
	},
	{
		guard: "the suite of a body notices a stop that ends another life (L-11.10)",
		file:  "body/sim/sim.go", from: `b.world.end(of.Incarnation)`, to: "for _, other := range b.world.Alive() {\n\t\tb.world.end(other)\n\t}",
		test: "TestContract",
	},
	{
		guard: "the suite of a body notices a proof of a body that lives (L-15.6)",
		file:  "body/sim/sim.go", from: `running > 0 || b.world.IsAlive(of.Incarnation)`, to: `running > 0`,
		test: "TestContract",
	},
	{
		guard: "the suite of a body notices a mark that is handed on (L-13.5)",
		file:  "body/sim/world.go", from: "\t\tdelete(w.alive, of)\n", to: "\t\tw.alive[\"x.2\"] = w.alive[of]\n\t\tdelete(w.alive, of)\n",
		test: "TestContract",
	},
}
