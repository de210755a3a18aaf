# acl.auth.php
# <?php exit()?>
# Strangers read; who is logged in writes and uploads.
*               @ALL          1
*               @user         8
