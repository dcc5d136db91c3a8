package eliza

// aboutSubjects are the rules for everything else.
func aboutSubjects() []rule {
	return []rule{
		{keys: "time hour clock o'clock", rank: 30, branches: []branch{
			{match: "* what time|hour is|was it *", clock: true, say: noClock()},
			{match: "* what is the time|hour *", clock: true, say: noClock()},
			{match: "* tell|give me the time|hour *", clock: true, say: noClock()},
			{match: "* know|got|have the time", clock: true, say: noClock()},
			{match: "* what time do|have you *", clock: true, say: noClock()},
			{match: "* look|looking at the clock *", clock: true, say: noClock()},
			{match: "* no|enough time *", say: []string{
				"Where does your time go?",
				"If a day had one hour more, who would get it?",
			}},
			{match: "*", say: []string{
				"Time weighs on you, it seems. In what way?",
				"Is it the time gone by that you mean, or the time ahead?",
			}},
		}},
		{keys: "computer computers machine machines robot program software ai", rank: 20, branches: []branch{
			{match: "*", say: []string{
				"Machines come up. Is that because you are talking to one?",
				"What do you think a machine can understand of you?",
				"Would you tell a person more than you tell me, or less?",
			}},
		}},
		{keys: "eliza", rank: 15, branches: []branch{{match: "*", say: []string{
			"That is what they call me, since 1966. And who is asking?",
			"Yes, I am listening.",
		}}}},
		{keys: "name", rank: 12, branches: []branch{
			{match: "* my name is +", say: []string{
				"I forget names as soon as we part, but I am glad to meet you. What shall we talk about?",
			}},
			{match: "* your name *", say: []string{"=eliza"}},
			{match: "*", say: []string{"Names matter little here. What lies behind this one?"}},
		}},
		{keys: "remember recall", rank: 6, branches: []branch{
			{match: "* i remember|recall +", say: []string{
				"What else comes back to you with {3}?",
				"Why {3}, of all things, and why now?",
				"Is it a memory that you seek, or one that seeks you?",
			}},
			{match: "* do you remember|recall +", say: []string{
				"I hold on to less than you think. What is there to be said about {3}?",
				"Help me: what was it with {3}?",
			}},
			{match: "*", say: []string{"How far back do your memories go?"}},
		}},
		{keys: "dream dreams dreamed dreamt nightmare nightmares", rank: 6, branches: []branch{
			{match: "* i dreamed|dreamt about|of +", say: []string{
				"And when you woke, what was left of {4}?",
				"Have you ever met {4} with open eyes?",
			}},
			{match: "* i dreamed|dreamt +", say: []string{
				"And how did you feel when you woke?",
				"Suppose it were no dream. What would you do?",
			}},
			{match: "*", say: []string{
				"Who else appears in your dreams?",
				"Dreams choose their subjects well. What do you make of this one?",
				"Does it come back, this dream?",
			}},
		}},
		{keys: "if", rank: 4, branches: []branch{
			{match: "* if +", say: []string{
				`"If {2}": do you hope for it, or do you fear it?`,
				"How likely is that, if you are honest?",
				`And without the "if", how would you say it?`,
			}},
			{match: "*", say: []string{"That is a big if."}},
		}},
		{keys: "because", rank: 2, branches: []branch{{match: "*", say: []string{
			"Is that the whole reason?",
			"And behind that reason, is there another?",
			"Would you accept that reason from a friend?",
		}}}},
		{keys: "sorry apologies apologise apologize", rank: 1, branches: []branch{{match: "*", say: []string{
			"There is nothing to forgive here.",
			"No harm done. What made you feel that you should say so?",
		}}}},
		{keys: "hello hi hey greetings morning evening", rank: 0, branches: []branch{{match: "*", say: []string{
			"Welcome. What is on your mind?",
			"Good to have you here. Where shall we begin?",
			"And a good day to you. How have you been?",
		}}}},
		{keys: "bye goodbye farewell", rank: 5, branches: []branch{{match: "*", say: []string{
			"Until next time. Take with you what was of use.",
			"Goodbye. I shall be here, and just as patient.",
		}}}},
		{keys: "thanks thank", rank: 4, branches: []branch{{match: "*", say: []string{
			"You did the work; I only asked. What else is there?",
			"You are welcome. Does something remain unsaid?",
		}}}},
		{keys: "perhaps maybe possibly probably", rank: 1, branches: []branch{{match: "*", say: []string{
			"You leave yourself a way out. From what?",
			"What would make you certain?",
			"Between yes and no, to which side do you lean?",
		}}}},
		{keys: "yes yeah yep sure certainly ok okay right", rank: 0, branches: []branch{{match: "*", say: []string{
			"Good. Then what follows from it?",
			"You say that as if it were simple. Is it?",
			"I see. Go on.",
		}}}},
		{keys: "no nope nah", rank: 0, branches: []branch{{match: "*", say: []string{
			"A plain no. What stands behind it?",
			"Not even a little?",
			"Is that a no for today, or for good?",
		}}}},
		{keys: "always never", rank: 2, branches: []branch{{match: "*", say: []string{
			"Can you think of a single time when it was otherwise?",
			"Every time, without exception? Tell me of the last one.",
			"That is a long time. Since when?",
		}}}},
		{keys: "everybody everyone nobody somebody someone people", rank: 2, branches: []branch{
			{match: "* everybody|everyone|nobody|people *", say: []string{
				"{2}? Whom do you see before you when you say that?",
				"Is there really no exception?",
				"Take one person out of the crowd. Who would it be?",
			}},
			{match: "*", say: []string{"Does this person have a name, perhaps?"}},
		}},
		{keys: "like alike same similar resembles", rank: 2, branches: []branch{
			{match: "* i like +", say: []string{"=i"}},
			{match: "*", say: []string{
				"Where does the likeness end?",
				"What do the two have in common, as you see it?",
			}},
		}},
		{keys: "friend friends", rank: 3, branches: []branch{{match: "*", say: []string{
			"What makes somebody a friend, to you?",
			"Whom would you call at three in the morning?",
			"Do you find it easy to ask a friend for help?",
		}}}},
		{keys: "work job boss office colleague colleagues career", rank: 3, branches: []branch{{match: "*", say: []string{
			"If nobody paid you for it, what part of your work would you still do?",
			"Do you bring your work home with you?",
			"Who sees what you do all day?",
		}}}},
		{keys: "money rich poor debt rent", rank: 3, branches: []branch{{match: "*", say: []string{
			"What would be enough?",
			"When money is the answer, what was the question?",
		}}}},
		{keys: "sleep awake insomnia", rank: 3, branches: []branch{{match: "*", say: []string{
			"What keeps turning in your head at night?",
			"Describe the last night on which you rested well.",
		}}}},
		{keys: "death die died dead dying", rank: 7, branches: []branch{{match: "*", say: []string{
			"That is a heavy thing to carry. Would you like to say more?",
			"Take your time. What do you miss most?",
		}}}},
		{keys: "can could", rank: 3, branches: []branch{
			{match: "* can|could you +", say: []string{
				"Would you like me to be able to {3}?",
				"If I could {3}, would you still need to ask?",
			}},
			{match: "* can|could i +", say: []string{
				"What would happen if you simply did {3}?",
				"Who decides whether you may {3}?",
			}},
			{match: "*", say: []string{"What would be possible then?"}},
		}},
		{keys: "why", rank: 4, branches: []branch{
			{match: "* why don't|won't|can't you +", say: []string{
				"Do you think that I should {3}?",
				"Perhaps I shall {3} one day. And you, what do you put off?",
			}},
			{match: "* why can't|couldn't|don't|didn't i +", say: []string{
				"Do you believe that you ought to {3}?",
				"What would be the first step, if you were to {3}?",
			}},
			{match: "*", say: []string{"=what"}},
		}},
		{keys: "what how when where who which", rank: 1, branches: []branch{{match: "*", say: []string{
			"What answer would you like best?",
			"If you had to answer that yourself, what would you say?",
			"That question did not come from nowhere. What brought it up?",
			"Whom else have you asked?",
		}}}},
		{keys: noKey, branches: []branch{{match: "*", say: []string{
			"Go on, I am listening.",
			"I would like to understand that better.",
			"And how does that sit with you?",
			"Say it once more, in other words.",
			"What is the most important part of that?",
		}}}},
	}
}

// noClock is what ELIZA says of the time where she is given no clock.
func noClock() []string {
	return []string{
		"I have no clock here; with me it is always now. Are you waiting for something?",
		"Nobody gave me a clock. What would you do if it were late?",
	}
}
