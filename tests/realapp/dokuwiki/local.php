<?php
// What larder's test sets. Everything else is as Debian's package has it.
$conf['title']      = 'Real application';
$conf['savedir']    = '@WORK@/data';
$conf['useacl']     = 1;
$conf['superuser']  = '@admin';
$conf['disableactions'] = 'register';
