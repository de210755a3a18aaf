<?php
// What Debian's WordPress is told for a measurement. @SOCKET@ is the database's, @SALT@ a word of this run.

define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', 'root' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', 'localhost:@SOCKET@' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
$table_prefix = 'wp_';

foreach ( array( 'AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE' ) as $name ) {
	define( $name . '_KEY', $name . '-key-@SALT@' );
	define( $name . '_SALT', $name . '-salt-@SALT@' );
}

// Several caches stand in front of it, each at an address of its own. A site has one, and writes it here.
define( 'WP_HOME', 'http://' . $_SERVER['HTTP_HOST'] );
define( 'WP_SITEURL', WP_HOME );

// A visitor's request does not start the site's chores; a timer of the system does (docs/guide/wordpress.md).
define( 'DISABLE_WP_CRON', true );
// Nobody outside is asked for updates.
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
define( 'AUTOMATIC_UPDATER_DISABLED', true );

if ( ! defined( 'ABSPATH' ) ) {
	define( 'ABSPATH', __DIR__ . '/' );
}
require_once ABSPATH . 'wp-settings.php';
