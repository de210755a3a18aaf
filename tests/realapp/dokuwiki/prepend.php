<?php
// Where Debian's package looks for its configuration, which is /etc/dokuwiki otherwise.
define('DOKU_MAIN_CONF', '@WORK@/conf/');
