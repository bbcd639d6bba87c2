"""Whatever agents, operators, files, intruders, clocks, disks and crashes do, in any order: the promises hold."""
