/* workflow_loops.h -- a workflow whose picture has something of everything, as IR. */
#ifndef LAB_WORKFLOW_LOOPS_H
#define LAB_WORKFLOW_LOOPS_H

/* A loop with an accumulator, in which a fan-out of two branches joins; behind it a guard and a handler. */
static const char loops[] =
    "{\"heddle\":1,\"name\":\"loops\",\"inputs\":[{\"name\":\"n\",\"default\":2}],"
    "\"functions\":[{\"name\":\"run\",\"params\":[\"n\"],\"nodes\":["
    "{\"id\":\"in\",\"kind\":\"ENTRY\"},"
    "{\"id\":\"zero\",\"kind\":\"CALC\",\"do\":[[\"assign\",0,[\"name\",\"sum\"]]]},"
    "{\"id\":\"each\",\"kind\":\"LOOP_HEAD\",\"over\":[\"call\",\"range\",[[\"name\",\"n\"]]],"
    "\"into\":[\"name\",\"i\"]},"
    "{\"id\":\"split\",\"kind\":\"FAN_HEAD\"},"
    "{\"id\":\"left\",\"kind\":\"ACTION\",\"action\":\"work\",\"args\":[1],\"into\":[\"name\","
    "\"got\"]},"
    "{\"id\":\"right\",\"kind\":\"ACTION\",\"action\":\"<work>\",\"args\":[2],\"into\":[\"name\","
    "\"got\"]},"
    "{\"id\":\"both\",\"kind\":\"BARRIER\",\"give\":[\"name\",\"got\"],\"into\":[\"name\",\"pair\"]"
    "},"
    "{\"id\":\"add\",\"kind\":\"CALC\",\"do\":[[\"aug\",\"+\",[\"name\",\"sum\"],[\"call\",\"sum\","
    "[[\"name\",\"pair\"]]]]]},"
    "{\"id\":\"big\",\"kind\":\"BRANCH\",\"when\":[[\"cmp\",[\"name\",\"sum\"],\">\",5]]},"
    "{\"id\":\"yes\",\"kind\":\"RETURN\",\"value\":true},"
    "{\"id\":\"no\",\"kind\":\"RETURN\",\"value\":false}],"
    "\"edges\":[[\"in\",\"zero\"],[\"zero\",\"each\"],[\"each\",\"split\",\"CONTINUE\"],[\"each\","
    "\"big\",\"BREAK\"],[\"split\",\"left\",\"ELEM\",0],[\"split\",\"right\",\"ELEM\",1],[\"left\","
    "\"both\",\"JOIN\"],[\"right\",\"both\",\"JOIN\"],[\"both\",\"add\"],[\"add\",\"each\","
    "\"BACK\"],"
    "[\"big\",\"yes\",\"GUARD\",0],[\"big\",\"no\",\"GUARD\",1]]}]}";

#endif
