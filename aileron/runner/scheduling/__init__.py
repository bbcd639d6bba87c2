"""What everything here moves by: tasks, turns, alarms, and who waits for what."""
