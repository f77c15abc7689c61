"""Analysis of a body: open it, write its statements to segments and pass its links on."""
