package eliza

// noKey is the rule of a text without keyword.
const noKey = "\x00"

// rules is what ELIZA knows. The mechanism is that of 1966; every line is our
// own. The order of the branches of a rule is that of their trial.
func rules() []rule {
	return append(aboutSpeakers(), aboutSubjects()...)
}

// aboutSpeakers are the rules for what is said of the two who talk.
func aboutSpeakers() []rule {
	return []rule{
		{keys: "i", rank: 3, branches: []branch{
			{match: "* i want|need|crave +", say: []string{
				"What would be different if you had {3}?",
				"Suppose that you got {3} tomorrow. What would you do the day after?",
				"Who stands between you and {3}?",
			}},
			{match: "* i am|was|feel|felt sad|unhappy|depressed|lonely|tired|afraid|anxious|worried|scared|angry|stressed|lost *", say: []string{
				"That sounds hard. When did you first notice that you were {3}?",
				"Is there an hour of the day when you are less {3}?",
				"If {3} had a voice, what would it say to you?",
			}},
			{match: "* i am|was|feel|felt happy|glad|better|fine|good|well|calm|proud *", say: []string{
				"I am pleased to hear it. What do you owe that to?",
				"What would it take to stay {3}?",
				"Who else noticed that you are {3}?",
			}},
			{match: "* i am +", say: []string{
				"How does it come that you are {2}?",
				"Would you rather not be {2}?",
				"What do others say when they learn that you are {2}?",
			}},
			{match: "* i was +", say: []string{
				"And are you still, today?",
				"What had gone before, when you were {2}?",
			}},
			{match: "* i feel|felt +", say: []string{
				"Where does that feeling take you?",
				"What usually happens just before you feel {3}?",
				"Does feeling {3} remind you of another time?",
			}},
			{match: "* i can't|couldn't +", say: []string{
				"What is it that keeps you from it?",
				"What if, one morning, you could {3}?",
				"Who told you that you could not {3}?",
			}},
			{match: "* i don't|didn't|won't +", say: []string{
				"And what if you did {3}?",
				"What holds you back?",
				"Is that your own choice, that you {2} {3}?",
			}},
			{match: "* i think|believe|guess|suppose +", say: []string{
				"How sure are you of that?",
				"What would make you doubt that {3}?",
				"Do the people around you see it so too?",
			}},
			{match: "* i hate|dislike +", say: []string{
				"Strong words. What has {3} done to you?",
				"Was there ever a time when you did not mind {3}?",
			}},
			{match: "* i love|like|enjoy +", say: []string{
				"What is it about {3} that does you good?",
				"When did you last make time for {3}?",
				"And does it, so to speak, love you back?",
			}},
			{match: "* i have +", say: []string{
				"Since when have you had {2}?",
				"And without {2}, who would you be?",
			}},
			{match: "* was i +", say: []string{
				"What would it change now, to know whether you were {2}?",
				"Who would have the right to say that you were {2}?",
			}},
			{match: "* i ? you *", say: []string{
				"What makes you {2} me, do you suppose?",
				"Do you {2} other people in the same way?",
			}},
			{match: "* i +", say: []string{
				"You {2}. How did that begin?",
				"What goes through your head when you {2}?",
				"Tell me of the last time that you {2}.",
			}},
			{match: "*", say: []string{"You, then. Go on.", "What about you?"}},
		}},
		{keys: "am", rank: 2, branches: []branch{
			{match: "* am i +", say: []string{
				"What would you do if you were {2}?",
				"Who would be the first to say that you are {2}?",
				"Would it frighten you to be {2}?",
			}},
			{match: "*", say: []string{"=i"}},
		}},
		{keys: "you", rank: 2, branches: []branch{
			{match: "* you are +", say: []string{
				"What have I said that makes me {2}?",
				"Would you like it better if I were not {2}?",
				"Is anyone else in your life {2}?",
			}},
			{match: "* are you +", say: []string{
				"Would it matter to you if I were {2}?",
				"Some days I wonder myself whether I am {2}. Why do you ask?",
				"If I said yes, what would you ask next?",
			}},
			{match: "* you don't|never ? me *", say: []string{
				"When did you first think that I {2} {3} you?",
				"Are there others who {2} {3} you?",
			}},
			{match: "* you ? me *", say: []string{
				"When did you first think that I {2} you?",
				"Is it me, or does somebody else {2} you too?",
			}},
			{match: "*", say: []string{
				"We keep coming round to me. You are the more interesting of us two.",
				"I am only the listener here. What is behind your question?",
				"Let us leave me out of it. How are things with you?",
			}},
		}},
		{keys: "your", rank: 2, branches: []branch{
			{match: "* your ? *", say: []string{
				"What is it about my {2} that keeps you busy?",
				"My {2}? Tell me first about yours.",
			}},
			{match: "*", say: []string{"=you"}},
		}},
		{keys: "my", rank: 4, branches: []branch{
			{
				match: "* my mother|father|mum|mom|dad|sister|brother|wife|husband|son|daughter|family|parents|child|children|partner *",
				say: []string{
					"Tell me more about your {2}.",
					"What is the first thing that you remember of your {2}?",
					"What would your {2} say if they heard us now?",
				},
				keep: []string{
					"I am still thinking of what you told me about your {2}.",
					"Is there anything that you would like to say to your {2}?",
				},
			},
			{
				match: "* my +",
				say: []string{
					`"Your {2}", you say. What comes to your mind with that?`,
					`What made you think of "your {2}" just now?`,
					`Does it trouble you, this matter of "your {2}"?`,
				},
				keep: []string{
					`Let us go back to something: "your {2}". Is there more to it?`,
					`A while ago you said "your {2}". Does it belong to this?`,
				},
			},
			{match: "*", say: []string{"Yours. And what is it to you?"}},
		}},
	}
}
