package main

// sharedGuards are those of shared conversations (C-33 to C-39).
var sharedGuards = []mutant{
	{
		guard: "shared: a turn that is taken up has the order of this one (C-35.5)",
		file:  "conversation/execution.go", from: `!bytes.Equal(found, input) ||`, to: `bytes.Equal(found, nil) ||`,
		test: "TestForgedTurn",
	},
	{
		guard: "shared: a turn that is taken up is of the flow of turns (C-35.5)",
		file:  "conversation/execution.go", from: `started.Flow != turnFlow(f.config.Name) || `, to: ``,
		test: "TestForgedTurn",
	},
	{
		guard: "shared: a turn that is taken up has this conversation as its parent (C-35.5)",
		file:  "conversation/execution.go", from: `started.Parent != order.Conversation ||`, to: `false ||`,
		test: "TestForgedTurn",
	},
	{
		guard: "shared: a turn that is taken up runs as its asker (C-35.5)",
		file:  "conversation/execution.go", from: ` || *started.Principal != order.Asker {`, to: ` {`,
		test: "TestForgedTurn",
	},
	{
		guard: "shared: a turn that was started past the coordinator runs nothing (C-35.5)",
		file:  "conversation/execution.go", from: `if err != nil || !begun.Genuine {`, to: `if err != nil {`,
		test: "TestRawTurn",
	},
	{
		guard: "shared: the id of a turn is not enough, its principal is the asker (C-35.5)",
		file:  "conversation/execution.go", from: `order.N) && sameAsker(owner(c), &order.Asker),`, to: `order.N),`,
		test: "TestTurnOfAnother",
	},
	{
		guard: "shared: a turn runs as the asker's own principal (C-35.7)",
		file:  "conversation/shared.go", from: `if mapped.Identity != asker {`, to: `if false {`,
		test: "TestDelegation",
	},
	{
		guard: "shared: a credential is refused where nobody stands for it (C-35.7)",
		file:  "conversation/client.go", from: `a.shared && !caller.Credential.IsZero() && c.shared.PrincipalFor == nil`, to: `false`,
		test: "TestDelegation",
	},
	{
		guard: "shared: only a yes clears (C-37.2)",
		file:  "conversation/shared.go", from: `return yes && err == nil && ctx.Err() == nil`, to: `return yes && (err == nil || err != nil)`,
		test: "TestStrictClearance",
	},
	{
		guard: "shared: a set of classes that may be cut is cleared for nobody (C-36.7)",
		file:  "conversation/classes.go", from: `if len(classes) == maxClasses {`, to: `if false {`,
		test: "TestManyClasses",
	},
	{
		guard: "shared: two sets of classes have two verdicts (C-37.11)",
		file:  "conversation/classes.go", from: `key := fmt.Sprintf("%q", classes)`, to: `key := fmt.Sprint(strings.Join(classes, "\x00"))`,
		test: "TestVerdictsOfSets",
	},
	{
		guard: "shared: what is counted in the queue is signed (C-39.5)",
		file:  "conversation/queue.go", from: `c.keys.verify(e) && !visit(b)`, to: `!visit(b)`,
		test: "TestMaxQueuedPerAsker",
	},
	{
		guard: "shared: what waits is shown to its asker alone (C-39.4)",
		file:  "conversation/queue.go", from: `if w.Mine {`, to: `if true {`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: who takes part is asked when a message is dequeued (C-39.3)",
		file:  "conversation/coordinate.go", from: "if err != nil || !m.passes(b.Kind) {\n\t\treturn", to: "if err != nil && m.passes(b.Kind) {\n\t\treturn",
		test: "TestRemovedWhileQueued",
	},
	{
		guard: "shared: a close is a manager's (C-33.9)",
		file:  "conversation/coordinate.go", from: `(kind != KindClose || m.Manager)`, to: `true`,
		test: "TestCloseOfAFormerManager",
	},
	{
		guard: "shared: who takes part is asked for each entry (C-37.10)",
		file:  "conversation/follow.go", from: `if err == nil && !rosterHas(roster, a.caller.Identity) {`, to: `if err == nil && len(roster) > MaxParticipants {`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: a history is what its reader may see (C-37.8)",
		file:  "conversation/history.go", from: `block: blockEvents, view: a.view(),`, to: `block: blockEvents,`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: a stream is what its reader may see (C-37.8)",
		file:  "conversation/follow.go", from: `t.scan.view = t.access.view()`, to: `t.scan.view = nil`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: who may see what is asked anew for each read (C-37.11)",
		file:  "conversation/follow.go", from: "\tt.scan.view = t.access.view()\n", to: "",
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: of another's rejected message the text is not shown (C-37.6)",
		file:  "conversation/view.go", from: `r.Text = ""`, to: `r.Reason = r.Reason + ""`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: the execution of a turn is told to its asker alone (C-37.7)",
		file:  "conversation/view.go", from: `r.TurnExecutionID = "" // C-37.7`, to: ``,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: live words are for the asker alone (C-37.9)",
		file:  "conversation/reply.go", from: `return r.listener == nil || sameAsker(r.listener, who)`, to: `return true`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: an asker is given what they are cleared for (C-38.1)",
		file:  "conversation/coordinate.go", from: `open(place) || cleared.covers(ctx, d.window.turns[place].Classes)`, to: `open(place) || cleared != nil`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: a question bears what stands before it (C-36.5)",
		file:  "conversation/turn.go", from: `union(user.Classes, b.stated(), d.window.classes(p.shown))`, to: `union(user.Classes, b.stated())`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: a notice bears what its maker states (C-45.8)",
		file:  "conversation/turn.go", from: `union(user.Classes, b.stated(), d.window.classes(p.shown))`, to: `union(user.Classes, d.window.classes(p.shown))`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: an answer bears what its question does (C-36.1)",
		file:  "conversation/coordinate.go", from: `d.shared.ofAnswer(a.classes, came.Called, came.Scope)`, to: `d.shared.ofAnswer(nil, came.Called, came.Scope)`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: an answer bears what its tools do (C-36.1)",
		file:  "conversation/classes.go", from: `for _, tool := range union(called) {`, to: `for _, tool := range union(called[:0]) {`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: a tool that nobody knows is unclassified (C-36.2)",
		file:  "conversation/classes.go", from: "\tif !known {\n\t\treturn []string{Unclassified}\n\t}\n", to: "",
		test: "TestUnclassified",
	},
	{
		guard: "shared: an answer bears what its memory does (C-35.10)",
		file:  "conversation/classes.go", from: `if scope != "" {`, to: `if false {`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: an edit bears what the edited turn does (C-27.11)",
		file:  "conversation/turn.go", from: `user.Classes = edited.Classes`, to: `user.Classes = edited.Classes[:0]`,
		test: "TestEditOfWhatIsNotShown",
	},
	{
		guard: "shared: one edits one's own (C-27.3)",
		file:  "conversation/turn.go", from: `d.shared != nil && !sameAsker(turn.Asker, b.Asker)`, to: `false`,
		test: "TestSharedEdit",
	},
	{
		guard: "shared: a turn with classes is not summarized (C-38.3)",
		file:  "conversation/window.go", from: `if len(w.turns[i].Classes) == 0 {`, to: `if i >= 0 {`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: a memory is that of the asker (C-35.8)",
		file:  "conversation/execution.go", from: `f.config.limitsOf(&order.Asker)`, to: `f.config.limitsOf(&order.Owner)`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: there is room for what is recalled (C-20.2)",
		file:  "conversation/coordinate.go", from: "\t\tlimits.MemoryScope = scopeIf(c.Agent.Memory != nil)\n", to: "",
		test: "TestRoomForWhatIsRecalled",
	},
	{
		guard: "shared: one stops a turn of one's own (C-46.5)",
		file:  "conversation/cuts.go", from: `case *who == *r.asker || sameAsker(who, r.owner):`, to: `case who != nil:`,
		test: "TestSharedStop",
	},
	{
		guard: "shared: one cuts a turn of one's own (C-39.2)",
		file:  "conversation/cuts.go", from: `return sameAsker(b.Asker, r.asker) && !`, to: `return !`,
		test: "TestNothingLeaks",
	},
	{
		guard: "shared: what cuts is signed (C-39.2)",
		file:  "conversation/cuts.go", from: `if b.ID != a.key() || !a.Message.Host || !signed() {`, to: `if !shaped {`,
		test: "TestForgedInterruption",
	},
	{
		guard: "shared: the service has started what is shared (C-34.3)",
		file:  "conversation/authority.go", from: ` && sameAsker(started.Principal, &c.shared.Service) &&`, to: ` &&`,
		test: "TestCoordinator",
	},
	{
		guard: "shared: what the service has not started says nothing (C-34.3)",
		file:  "conversation/turn.go", from: `a.shared, a.genuine = true, sameAsker(owner(d.c), &d.shared.Service)`, to: `a.shared, a.genuine = true, true`,
		test: "TestFakeCoordinatorRunsNothing",
	},
	{
		guard: "shared: the service is nobody's identity (C-34.2)",
		file:  "conversation/authority.go", from: `(c.shared == nil || !c.shared.isService(caller.Identity))`, to: `true`,
		test: "TestCoordinator",
	},
	{
		guard: "shared: the service takes no part (C-34.2)",
		file:  "conversation/people.go", from: `who.Validate() != nil || c.shared.isService(who)`, to: `who.Validate() != nil`,
		test: "TestCoordinator",
	},
	{
		guard: "shared: the owner stays (C-33.2)",
		file:  "conversation/people.go", from: "\t\treturn ErrOwnerStays\n", to: "",
		test: "TestMaxParticipants",
	},
	{
		guard: "shared: a hundred take part at most (C-33.3)",
		file:  "conversation/people.go", from: `len(roster)+1 >= MaxParticipants`, to: `len(roster) >= MaxParticipants`,
		test: "TestMaxParticipants",
	},
	{
		guard: "shared: a change is judged by the set that it changes (C-33.6)",
		file:  "conversation/participants.go", from: `Stream: ParticipantsPrefix + conversation, Expect: next,`, to: `Stream: ParticipantsPrefix + conversation, Expect: journal.AtEnd + 0*next,`,
		test: "TestConcurrentChanges",
	},
	{
		guard: "shared: a set that cannot be read admits nobody (C-33.11)",
		file:  "conversation/authority.go", from: `case noRoster != nil: // it might have admitted them (C-33.11)`, to: `case noRoster != nil && id == "":`,
		test: "TestBrokenDirectory",
	},
	{
		guard: "shared: missing and forbidden cost the same reads (C-23.7)",
		file:  "conversation/authority.go", from: "\tk, err := c.readOwner(ctx, id)\n",
		to:   "\tif remembered && noRoster == nil {\n\t\treturn access{}, ErrNotFound\n\t}\n\tk, err := c.readOwner(ctx, id)\n",
		test: "TestStrangersAreRefused",
	},
}
